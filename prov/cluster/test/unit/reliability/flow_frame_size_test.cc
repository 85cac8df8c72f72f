// How long frames may be: the network between two links with large MTUs may have a smaller one.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <optional>

#include "support/flow_pair.h"

namespace cluster::test {
namespace {

void exchange(FlowPair& pair, std::size_t length = 1000) {
  for (int i = 0; i < 40; ++i) pair.a.send_small(length);
  for (int i = 0; i < 40; ++i) pair.b.send_small(length);
  ASSERT_TRUE(pair.run(1s));
  pair.b.expect_all_of(pair.a);
  pair.a.expect_all_of(pair.b);
}

struct JumboPair : FlowPair {
  explicit JumboPair(std::uint64_t seed) : FlowPair(seed, jumbo()) {}
  static reliability::FlowSettings jumbo() {
    reliability::FlowSettings settings;
    settings.frame_max = 8972;
    return settings;
  }
  void exchange() { cluster::test::exchange(*this); }
};

TEST(FlowFrameSize, LongFramesAreUsedOnceOneHasArrived) {
  JumboPair pair(1);
  EXPECT_LE(pair.a.full_bulk(), 1472u);
  pair.exchange();
  EXPECT_EQ(pair.a.full_bulk(), 8972u - 32 - 20);
  EXPECT_EQ(pair.b.full_bulk(), 8972u - 32 - 20);
  pair.a.send_bulk(pair.a.full_bulk());
  pair.exchange();
}

TEST(FlowFrameSize, APathThatSwallowsLongFramesIsUsedWithShortOnesAndSaidOnce) {
  JumboPair pair(1);
  pair.network.drop = [](const FakeNetwork::Packet& packet, const SocketAddress&) {
    return packet.bytes.size() > 1472;
  };
  for (int i = 0; i < 5; ++i) pair.exchange();
  EXPECT_EQ(pair.a.full_bulk(), 1472u - 32 - 20);
  ASSERT_EQ(pair.a.log.lines.size(), 1u);
  EXPECT_NE(pair.a.log.lines[0].find("8972"), std::string::npos);
  EXPECT_LE(pair.network.lost, 8u) << "a few tries each";
}

/// For FakeNetwork::drop.
auto longer_than(std::size_t most) {
  return
      [most](const FakeNetwork::Packet& packet, const SocketAddress&) { return packet.bytes.size() > most; };
}

/// What an MTU of so many bytes leaves for a frame.
constexpr std::size_t within(std::size_t mtu) { return mtu - 28; }

/// The path narrows while frames of either kind are queued and outstanding: messages that share frames, in
/// order, and a run of long ones.
void narrow_while_running(FlowPair& pair, std::size_t mtu) {
  exchange(pair);
  pair.network.drop = longer_than(within(mtu));
  for (int i = 0; i < 60; ++i) {
    pair.a.send_small(i % 2 == 0 ? 700 : 90);
  }
  pair.a.send_long_bulk(100'000);
  ASSERT_TRUE(pair.run(20s)) << "MTU " << mtu;
  pair.b.expect_all_of(pair.a);
  EXPECT_LE(pair.a.full_bulk(), within(mtu));
  const std::uint64_t lost = pair.network.lost;
  for (int i = 0; i < 60; ++i) pair.a.send_small(400);
  ASSERT_TRUE(pair.run(1s));
  pair.b.expect_all_of(pair.a);
  EXPECT_LE(pair.network.lost - lost, 9u) << "what is sent now is short, but for probes";
  EXPECT_EQ(pair.a.log.lines.size(), 1u);
}

/// 1272 is a tunnel in IPv6, 576 the least that IPv4 is used with.
TEST(FlowFrameSize, AnEthernetPathThatNarrowsIsUsedWithShorterFrames) {
  for (const std::size_t mtu : {1400u, 1272u, 1200u, 576u}) {
    FlowPair pair(1);
    narrow_while_running(pair, mtu);
  }
}

TEST(FlowFrameSize, AJumboPathThatNarrowsIsUsedWithShorterFrames) {
  for (const std::size_t mtu : {1400u, 1272u, 1200u, 576u}) {
    JumboPair pair(1);
    narrow_while_running(pair, mtu);
  }
}

/// The call included.
TEST(FlowFrameSize, APathThatIsNarrowFromTheBeginningIsUsedWithShorterFrames) {
  for (const std::size_t mtu : {1400u, 1200u, 576u}) {
    FlowPair pair(1);
    pair.network.drop = longer_than(within(mtu));
    pair.a.send_small(1100);
    pair.a.send_long_bulk(20'000);
    ASSERT_TRUE(pair.run(1s)) << "MTU " << mtu;
    pair.a.send_long_bulk(20'000);
    exchange(pair, 400);
    EXPECT_LE(pair.a.full_bulk(), within(mtu));
    ASSERT_EQ(pair.a.log.lines.size(), 1u);
    const std::string used = mtu > 1260 ? "at most 1232" : "at most 548";
    EXPECT_NE(pair.a.log.lines[0].find(used), std::string::npos) << pair.a.log.lines[0];
  }
}

/// Others as long arrive meanwhile, as with many senders to one port (256 of them took such losses for a
/// narrow path).
TEST(FlowFrameSize, AFrameThatAFullQueueDropsAgainAndAgainDoesNotMakeAPathShort) {
  FlowPair pair(1);
  exchange(pair);
  std::optional<std::uint32_t> victim;
  int drops = 0;
  pair.network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress&) {
    if (packet.bytes.size() < 1400) return false;
    wire::FrameHeader header;
    std::memcpy(&header, packet.bytes.data(), sizeof header);
    if (!victim) victim = header.sequence;
    if (header.sequence != *victim || drops == 6) return false;
    ++drops;
    return true;
  };
  for (int i = 0; i < 20; ++i) {
    pair.a.send_long_bulk(100'000);
    ASSERT_TRUE(pair.run(1s));
  }
  EXPECT_EQ(drops, 6);
  EXPECT_EQ(pair.a.full_bulk(), 1472u - 32 - 20);
}

/// The peer gets the processor for one turn in a while: what is sent meanwhile, probes as well, is sent
/// several times and acknowledged after that.
TEST(FlowFrameSize, LostProcessorTimeDoesNotMakeAPathShort) {
  FlowPair pair(1);
  exchange(pair);
  const auto next_turn_of_a = [&pair](Time then) {
    pair.clock.set(std::max(then, pair.clock.now() + 200ns));
    pair.a.turn();
  };
  for (int round = 0; round < 30; ++round) {
    pair.a.send_small(1400);
    pair.a.turn();
    const std::uint64_t before = pair.a.counters.frames_retransmitted;
    const Time latest = pair.clock.now() + 1s;
    while (pair.a.counters.frames_retransmitted < before + 4 && pair.a.flow->deadline() < latest) {
      next_turn_of_a(pair.a.flow->deadline());
    }
    pair.b.turn();
    next_turn_of_a(pair.clock.now() + pair.network.conditions.delay);
  }
  EXPECT_TRUE(pair.a.log.lines.empty()) << pair.a.log.lines[0];
  ASSERT_TRUE(pair.run(5s));
  exchange(pair);
  EXPECT_EQ(pair.a.full_bulk(), 1472u - 32 - 20);
  pair.b.expect_all_of(pair.a);
}

/// Found by the simulator: the flow retransmitted the first part of a frame again and again, because there
/// was never space for two.
TEST(FlowFrameSize, ALinkWithSpaceForOneFrameTakesThePartsOneByOne) {
  FlowPair pair(1);
  exchange(pair);
  pair.network.drop = longer_than(within(1300));
  bool full = false;
  pair.network.link_full = [&](const SocketAddress& from) { return from == name_of(1) && (full = !full); };
  pair.a.send_long_bulk(100'000);
  EXPECT_TRUE(pair.run(20s));
  pair.b.expect_all_of(pair.a);
}

/// Parts of an earlier sending may have arrived, so one part may complete the frame, although the link has
/// not taken the rest.
TEST(FlowFrameSize, ThePartsThatALinkTakesUseUpTheirNumber) {
  FlowPair pair(1);
  exchange(pair);
  constexpr unsigned kNumbered = wire::frame_flag::kSequenced | wire::frame_flag::kPart;
  std::map<std::uint32_t, std::uint32_t> frame_of;  // by transmission number
  FakeRandom random(7);
  pair.network.drop = [&, narrow = longer_than(within(1300))](const FakeNetwork::Packet& packet,
                                                              const SocketAddress& to) {
    wire::FrameHeader header;
    std::memcpy(&header, packet.bytes.data(), sizeof header);
    if (to == name_of(2) && (header.flags & kNumbered) != 0) {
      const std::uint32_t frame = header.sequence;
      EXPECT_EQ(frame_of.try_emplace(header.transmission, frame).first->second, frame);
    }
    return narrow(packet, to) || random.below(3) == 0;
  };
  pair.network.link_full = [&](const SocketAddress& from) {
    return from == name_of(1) && random.below(2) == 0;
  };
  for (int i = 0; i < 10; ++i) pair.a.send_long_bulk(100'000);
  EXPECT_TRUE(pair.run(60s));
  pair.b.expect_all_of(pair.a);
  EXPECT_EQ(pair.a.counters.refused_window, 0u) << "an acknowledgement of parts that have left";
}

/// The first part of the second sending completes the frame, so the rest never leaves.
TEST(FlowFrameSize, AFrameWhoseRestNeverLeavesDoesNotCloseTheLane) {
  FlowPair pair(1);
  exchange(pair);
  pair.pass(300ms);  // so long that the fourth sending leaves in parts
  int parts = 0;
  pair.network.drop = [&, narrow = longer_than(within(1300))](const FakeNetwork::Packet& packet,
                                                              const SocketAddress& to) {
    const bool part = (packet.bytes[3] & std::byte{wire::frame_flag::kPart}) != std::byte{0};
    return narrow(packet, to) || (part && ++parts == 1);
  };
  pair.network.link_full = [&](const SocketAddress& from) { return from == name_of(1) && parts == 3; };
  const std::size_t before = pair.b.smalls.size();
  pair.a.send_small(1400);
  pair.pass(2s);
  EXPECT_EQ(parts, 3);
  EXPECT_EQ(pair.b.smalls.size(), before + 1);
  pair.network.drop = nullptr;
  pair.network.link_full = nullptr;
  for (int i = 0; i < 20; ++i) exchange(pair);
  EXPECT_TRUE(pair.a.flow->lane().accepts(8));
}

TEST(FlowFrameSize, AnOutageDoesNotMakeAPathShort) {
  FlowPair pair(1);
  exchange(pair);
  pair.network.drop = [](const FakeNetwork::Packet&, const SocketAddress&) { return true; };
  for (int i = 0; i < 40; ++i) pair.a.send_small(1000);
  EXPECT_FALSE(pair.run(500ms));
  pair.network.drop = nullptr;
  ASSERT_TRUE(pair.run(5s));
  exchange(pair);
  pair.b.expect_all_of(pair.a);
  EXPECT_EQ(pair.a.full_bulk(), 1472u - 32 - 20);
}

TEST(FlowFrameSize, RandomLossDoesNotMakeAPathShort) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    JumboPair pair(seed);
    pair.network.conditions.loss = 0.1;
    pair.exchange();
    pair.exchange();
    EXPECT_GT(pair.a.full_bulk(), 8000u) << "seed " << seed;
  }
}

}  // namespace
}  // namespace cluster::test
