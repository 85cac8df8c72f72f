// The EtherType path: once it is validated, single frames take it; the flow leaves it at the first loss, and
// it never delays anything twice.
#include <gtest/gtest.h>

#include "multipath/path_validator.h"
#include "support/flow_pair.h"

namespace cluster::test {
namespace {

constexpr Duration kRoundTrip = 20us;

struct EthertypePair : FlowPair {
  explicit EthertypePair(bool peer_has_one = true) : FlowPair(1, with_ethertype(true)) {
    b.settings = with_ethertype(peer_has_one);
    b.begin(1);
    network.drop = [this](const FakeNetwork::Packet& packet, const SocketAddress&) {
      (packet.ethertype ? by_ethertype : by_ip) += 1;
      if (!packet.ethertype) return ip_blocked;
      const bool lost = packet.from == name_of(1) ? blocked_from_a : blocked_from_b;
      dropped += lost;
      return lost;
    };
  }
  static reliability::FlowSettings with_ethertype(bool has_one) {
    reliability::FlowSettings settings = pair_settings();
    settings.ethertype = has_one;
    return settings;
  }
  /// Messages in both directions in turn, each after the one before; returns the longest time that one took.
  Duration ping_pong(int count) {
    Duration longest{0};
    for (int i = 0; i < count; ++i) {
      for (FlowEnd* end : {&a, &b}) {
        const Time begin = clock.now();
        const std::size_t wanted = other(*end).smalls.size() + 1;
        end->send_small(40);
        end->turn();
        while (other(*end).smalls.size() < wanted && step(begin + 10s)) continue;
        longest = std::max(longest, clock.now() - begin);
      }
    }
    EXPECT_TRUE(run(10s));
    b.expect_all_of(a);
    a.expect_all_of(b);
    return longest;
  }
  /// Only this end runs for so long.
  void alone(FlowEnd& end, Duration time) {
    for (const Time until = clock.now() + time; clock.now() < until;) {
      clock.advance(100us);
      end.turn();
    }
  }
  /// b reads a's message, is busy for `answer` until it replies and for `look` until it reads the
  /// retransmission.
  void answered_late(Duration answer, Duration look) {
    a.send_small(40, false);
    a.turn();
    clock.advance(network.conditions.delay);
    b.turn();
    alone(a, answer);
    clock.advance(network.conditions.delay);
    b.send_small(40);
    b.pump();
    b.flow->transmit(clock.now(), b.link);
    alone(a, look);
    b.turn();
  }
  FlowEnd& other(const FlowEnd& end) { return &end == &a ? b : a; }
  static bool takes_ethertype(const FlowEnd& end) { return end.flow->stats().paths.front().ethertype; }
  void count_from_here() { by_ethertype = by_ip = dropped = 0; }

  bool blocked_from_a = false;
  bool blocked_from_b = false;
  bool ip_blocked = false;
  std::size_t by_ethertype = 0;
  std::size_t by_ip = 0;
  std::size_t dropped = 0;
};

TEST(FlowEthertype, CarriesAllFramesThatLeaveAloneOnceItIsValidated) {
  EthertypePair pair;
  EXPECT_EQ(pair.by_ethertype, 0u);
  pair.ping_pong(30);
  EXPECT_TRUE(pair.takes_ethertype(pair.a) && pair.takes_ethertype(pair.b));
  pair.count_from_here();
  pair.ping_pong(30);
  EXPECT_GE(pair.by_ethertype, 60u);
  EXPECT_EQ(pair.by_ip, 0u);
}

TEST(FlowEthertype, IsNotChallengedBeforeEnoughFramesWereSent) {
  EthertypePair pair;
  pair.ping_pong(3);
  EXPECT_EQ(pair.by_ethertype, 0u);
}

TEST(FlowEthertype, IsNotChallengedWhereThePeerHasNone) {
  EthertypePair pair(false);
  pair.ping_pong(100);
  EXPECT_EQ(pair.by_ethertype, 0u);
}

TEST(FlowEthertype, ANetworkThatDropsItsFramesCostsChallengesOnly) {
  EthertypePair pair;
  pair.ping_pong(1);           // first contact takes a round trip more
  pair.blocked_from_a = true;  // one direction is enough: b's challenges arrive, the answers do not
  const Duration longest = pair.ping_pong(300);
  EXPECT_FALSE(pair.takes_ethertype(pair.a) || pair.takes_ethertype(pair.b));
  EXPECT_LE(longest, kRoundTrip);
  EXPECT_EQ(pair.a.counters.frames_retransmitted + pair.b.counters.frames_retransmitted, 0u);
  EXPECT_GE(pair.dropped, 2u);
  EXPECT_LE(pair.dropped, 16u) << "challenged at doubling intervals";
}

struct Blocked {
  bool from_a;
  bool from_b;
};

class FlowEthertypeBlocked : public ::testing::TestWithParam<Blocked> {};

TEST_P(FlowEthertypeBlocked, IsLeftAfterOneLossAndTakenAgainLater) {
  EthertypePair pair;
  pair.ping_pong(30);
  pair.pass(multipath::PathValidator::kTrustedAfter);
  pair.blocked_from_a = GetParam().from_a;
  pair.blocked_from_b = GetParam().from_b;
  pair.count_from_here();
  pair.ping_pong(5);
  EXPECT_GE(pair.dropped, 1u);
  EXPECT_LE(pair.ping_pong(100), kRoundTrip) << "nothing waits for a timer any more";
  EXPECT_LE(pair.dropped, 16u);
  EXPECT_EQ(pair.a.flow->status(), Status::ok);
  pair.blocked_from_a = pair.blocked_from_b = false;
  pair.pass(2s);
  pair.ping_pong(5);
  pair.count_from_here();
  pair.ping_pong(5);
  EXPECT_EQ(pair.by_ip, 0u);
}

TEST_P(FlowEthertypeBlocked, AMessageWithoutReplyIsAcknowledgedAfterOneRetransmission) {
  EthertypePair pair;
  pair.ping_pong(30);
  pair.blocked_from_a = GetParam().from_a;
  pair.blocked_from_b = GetParam().from_b;
  const Time begin = pair.clock.now();
  pair.a.send_small(40);
  ASSERT_TRUE(pair.run(1s));
  EXPECT_LE(pair.clock.now() - begin, 10 * kRoundTrip);
  EXPECT_EQ(pair.a.counters.frames_retransmitted, 1u);
  EXPECT_EQ(pair.a.counters.timeouts, 0u);
  for (int i = 0; i < 20; ++i) {
    pair.a.send_small(40);
    ASSERT_TRUE(pair.run(1s));
  }
  EXPECT_EQ(pair.a.counters.frames_retransmitted, 1u) << "both have left it by then";
}

INSTANTIATE_TEST_SUITE_P(Directions, FlowEthertypeBlocked,
                         ::testing::Values(Blocked{true, false}, Blocked{false, true}, Blocked{true, true}));

TEST(FlowEthertype, DoesNotKeepAPeerAliveThatIsNotReachedByIp) {
  EthertypePair pair;
  pair.ping_pong(30);
  pair.ip_blocked = true;
  for (int i = 0; i < 8; ++i) pair.a.send_bulk(pair.a.full_bulk());
  const Time begin = pair.clock.now();
  while (pair.a.flow->status() == Status::ok && pair.clock.now() < begin + 60s) {
    pair.b.send_small(40);  // which arrives, and shows nothing of the IP path
    pair.pass(100ms);
  }
  EXPECT_EQ(pair.a.flow->status(), Status::unreachable);
  EXPECT_LE(pair.clock.now() - begin, 11s);
}

TEST(FlowEthertype, IsTriedEverLessOftenWhereItLosesSomeFrames) {
  EthertypePair pair;
  pair.ping_pong(30);
  std::size_t carried = 0;
  pair.network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress&) {
    return packet.ethertype && packet.bytes.size() > 64 && ++carried % 4 == 0;
  };
  std::size_t lost_before = 0;
  for (int second = 0; second < 20; ++second) {
    for (int i = 0; i < 100; ++i) {
      pair.a.send_small(40);
      pair.pass(10ms);
    }
    if (second == 9) lost_before = pair.network.lost;
  }
  EXPECT_GE(lost_before, 5u);
  EXPECT_LE(pair.network.lost - lost_before, 10u) << "one a second at most";
}

TEST(FlowEthertype, ABusyPeerDoesNotCauseChallenges) {
  EthertypePair pair;
  pair.ping_pong(30);
  std::size_t challenges = 0;
  pair.network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress&) {
    wire::FrameView view;
    challenges += wire::admit(packet.bytes, view) == wire::Refusal::none &&
                  view.kind == wire::FrameKind::path_challenge;
    return false;
  };
  for (int i = 0; i < 100; ++i) {
    pair.a.send_small(40);
    pair.a.turn();
    pair.alone(pair.a, 7ms);
    pair.b.turn();
    ASSERT_TRUE(pair.run(1s));
  }
  EXPECT_LE(challenges, 10u);
  EXPECT_TRUE(pair.takes_ethertype(pair.a) && pair.takes_ethertype(pair.b));
}

/// The receiver reads the frame, is busy, replies, and reads the retransmission, perhaps much later: that was
/// sent before the reply arrived.
TEST(FlowEthertype, APeerThatIsBusyBeforeItAnswersDoesNotFailIt) {
  for (const Duration look : {0us, 5000us}) {
    EthertypePair pair;
    pair.ping_pong(30);
    for (int i = 0; i < 20; ++i) {
      pair.answered_late(1ms, look);
      EXPECT_TRUE(pair.takes_ethertype(pair.b)) << i;
      pair.ping_pong(10);  // or such reply times would be expected
    }
    EXPECT_GE(pair.b.counters.frames_duplicate, 20u);
    EXPECT_TRUE(pair.takes_ethertype(pair.a) && pair.takes_ethertype(pair.b));
  }
}

/// Host delay makes replies late; a frame whose acknowledgement was lost is retransmitted much sooner.
TEST(FlowEthertype, HostDelayDoesNotHideALostAcknowledgement) {
  EthertypePair pair;
  pair.ping_pong(30);
  for (int i = 0; i < 8; ++i) {
    pair.b.send_small(40);
    pair.b.turn();
    pair.alone(pair.b, 2ms);
    pair.a.turn();
    ASSERT_TRUE(pair.run(1s));
  }
  ASSERT_TRUE(pair.takes_ethertype(pair.b));
  ASSERT_GT(pair.b.flow->stats().paths.front().reply_longest, 1ms);
  EXPECT_LT(pair.b.flow->stats().paths.front().round_trip, 2 * kRoundTrip);
  pair.blocked_from_b = true;
  pair.a.send_small(40);
  ASSERT_TRUE(pair.run(1s));
  EXPECT_FALSE(pair.takes_ethertype(pair.b));
}

TEST(FlowEthertype, RetransmissionsTakeTheIpPath) {
  EthertypePair pair;
  pair.ping_pong(30);
  std::size_t retransmissions = 0;
  std::size_t first_sendings = 0;
  std::uint32_t last = 0;
  pair.network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress&) {
    wire::FrameView view;
    if (wire::admit(packet.bytes, view) != wire::Refusal::none || !view.sequenced()) return false;
    const bool first = ++first_sendings == 1;
    if (first) last = view.sequence.value;
    if (!first && view.sequence.value == last) {
      ++retransmissions;
      EXPECT_FALSE(packet.ethertype);
    }
    return first;
  };
  pair.a.send_small(40);
  ASSERT_TRUE(pair.run(1s));
  EXPECT_GE(retransmissions, 1u);
}

TEST(FlowEthertype, AWholeFrameTakesIt) {
  EthertypePair pair;
  pair.ping_pong(30);
  pair.count_from_here();
  pair.a.send_small(1400);
  pair.a.turn();
  EXPECT_EQ(pair.by_ethertype, 1u);
  ASSERT_TRUE(pair.run(1s));
}

TEST(FlowEthertype, ALongFrameForAPeerWithSmallSlotsTakesTheIpPathAndIsNotOvertaken) {
  EthertypePair pair;
  pair.b.settings.ethertype_whole = false;
  pair.b.begin(1);
  pair.ping_pong(30);
  pair.count_from_here();
  pair.a.send_small(link::kEthertypeFrameOld);
  pair.a.turn();
  EXPECT_EQ(pair.by_ip, 1u);
  pair.a.send_small(40);
  pair.a.turn();
  EXPECT_EQ(pair.by_ethertype, 0u);
  ASSERT_TRUE(pair.run(1s));
}

TEST(FlowEthertype, NothingOvertakesABurst) {
  EthertypePair pair;
  pair.ping_pong(30);
  const std::size_t full = pair.a.full_bulk();
  for (int i = 0; i < 8; ++i) pair.a.send_bulk(full);
  pair.count_from_here();
  pair.a.turn();
  EXPECT_EQ(pair.by_ip, 8u) << "a super-frame";
  pair.a.send_small(40);
  pair.a.turn();
  EXPECT_EQ(pair.by_ethertype, 0u) << "the burst has not arrived yet";
  ASSERT_TRUE(pair.run(1s));
  pair.count_from_here();
  pair.a.send_small(40);
  pair.a.turn();
  EXPECT_EQ(pair.by_ethertype, 1u);
}

}  // namespace
}  // namespace cluster::test
