// Two engines with a key that do not reach each other, and one or two relays that reach both.
#include "relay/relayed_link.h"

#include <cstring>

#include "relay/keep_alive_answer.h"
#include "relay/relay.h"
#include "seal/keep_alive_seal.h"
#include "support/node.h"

namespace cluster::relay {
namespace {

using test::kA;
using test::kB;
using test::Node;
using test::NodeKind;
using Packet = test::FakeNetwork::Packet;
using wire::FrameKind;

const SocketAddress kRelay = test::node_name(91), kOtherRelay = test::node_name(92);

FrameKind kind_of(ConstBytes frame) {
  return static_cast<FrameKind>(frame[offsetof(wire::FrameHeader, kind)]);
}

/// A relay that may die and begin anew.
struct RelayHost {
  RelayHost(test::FakeNetwork& network, const SocketAddress& name, const seal::Credentials& credentials)
      : link(network, name), keys(relay_keys(credentials.keys)) {
    begin();
  }
  void begin() {
    relay = std::make_unique<Relay>(std::vector<JobRelayKeys>{keys}, link, world.environment());
  }

  test::FakeEnvironment world;
  test::FakeLink link;
  JobRelayKeys keys;
  std::unique_ptr<Relay> relay;  ///< null while it is dead
};

class RelayedLinkTest : public test::EngineTest {
 protected:
  RelayedLinkTest() {
    network.drop = [this](const Packet& packet, const SocketAddress& to) { return take(packet, to); };
  }
  std::unique_ptr<Node> node(const SocketAddress& name, const SocketAddress& peer) {
    NodeKind kind;
    kind.credentials = credentials;
    kind.relays = {kRelay, kOtherRelay};
    return std::make_unique<Node>(network, name, peer, ++epochs_, nullptr, test::node_settings(), kind);
  }
  /// Returns true if the frame does not arrive. The keep-alive responders of the nodes answer at once.
  bool take(const Packet& packet, const SocketAddress& to) {
    if (see) see(packet, to);
    const bool node_to_node = (packet.from == kA || packet.from == kB) && (to == kA || to == kB);
    if (node_to_node && !direct) return true;
    if (lose_requests && kind_of(packet.bytes) == FrameKind::relay_request) return true;
    if ((to != kA && to != kB) || kind_of(packet.bytes) != FrameKind::keep_alive) return false;
    std::array<std::byte, kAnswerMax> answer;
    const std::size_t size = answer_keep_alive(credentials, packet.bytes, to, to, answer);
    if (size != 0) inject(to, packet.from, ConstBytes(answer).first(size));
    return true;
  }
  void run(Duration time) {
    for (const Time end = clock.now() + time; clock.now() < end;) {
      clock.advance(200us);
      for (RelayHost* const each : {&one, &other}) {
        each->world.clock.set(clock.now());
        if (each->relay != nullptr) each->relay->poll();
      }
      a->engine.poll();
      b->engine.poll();
    }
  }
  /// Messages go both ways. Returns how long they took.
  Duration exchange() {
    const Time begin = clock.now();
    for (const auto& [from, to] : {std::pair{a.get(), b.get()}, std::pair{b.get(), a.get()}}) {
      to->receive();
      from->send();
      for (int i = 0; i < 5000 && to->received.empty(); ++i) run(1ms);
      EXPECT_EQ(test::take_count(to->received), 1u);
      EXPECT_EQ(to->got, from->word);
    }
    return clock.now() - begin;
  }
  std::uint64_t forwarded() const {
    return (one.relay ? one.relay->totals().frames : 0) + (other.relay ? other.relay->totals().frames : 0);
  }
  void exchange_for(Duration time) {
    for (const Time end = clock.now() + time; clock.now() < end; run(20ms)) exchange();
  }

  bool direct = false;  ///< the nodes reach each other
  bool lose_requests = false;
  std::function<void(const Packet& packet, const SocketAddress& to)> see;
  seal::Credentials credentials = test::credentials({"0123456789abcdef"});
  RelayHost one{network, kRelay, credentials}, other{network, kOtherRelay, credentials};

 private:
  std::uint64_t epochs_ = 0;

 protected:
  std::unique_ptr<Node> a = node(kA, kB), b = node(kB, kA);
};

TEST_F(RelayedLinkTest, MessagesGoThroughARelay) {
  EXPECT_LT(exchange(), 1s);
  EXPECT_EQ(a->logged("is reached through the relay 10.0.0.9"), 1u);
  EXPECT_GT(forwarded(), 0u);
  EXPECT_LT(exchange(), 5ms) << "the way is known";
}

TEST_F(RelayedLinkTest, NoRelayIsUsedWhileTheNodesReachEachOther) {
  direct = true;
  exchange_for(3s);
  EXPECT_EQ(forwarded(), 0u);
}

TEST_F(RelayedLinkTest, TheRelayIsLeftWhenADirectWayAppearsAndUsedAgainWhenItEnds) {
  exchange();
  direct = true;
  exchange_for(1s);
  const std::uint64_t before = forwarded();
  exchange_for(2s);
  EXPECT_EQ(forwarded(), before);
  EXPECT_EQ(a->logged("is reached without a relay"), 1u);
  direct = false;
  EXPECT_LT(exchange(), 2s);
  EXPECT_GT(forwarded(), before);
}

TEST_F(RelayedLinkTest, ADeadRelayIsReplacedWithinASecond) {
  exchange_for(1s);
  RelayHost& used = one.relay->totals().frames > other.relay->totals().frames ? one : other;
  used.relay.reset();
  EXPECT_LT(exchange(), 1s);
  EXPECT_GT(forwarded(), 0u);
}

TEST_F(RelayedLinkTest, ARelayThatHasBegunAnewIsJoinedAgain) {
  exchange();
  one.begin();
  other.begin();
  EXPECT_LT(exchange(), 6s) << "b only listens at first, so it notices nothing until it asks whether a lives";
  EXPECT_EQ(one.relay->members() + other.relay->members(), 4u);
}

/// The relay knows the earlier process, so it forwards frames, and the keep-alive responder answers. But the
/// engine does not know its number there.
TEST_F(RelayedLinkTest, AProcessWhoseRequestsWereLostJoinsWhenAFrameComes) {
  exchange();
  lose_requests = true;
  b = node(kB, kA);
  run(10s);
  lose_requests = false;
  b->receive();
  a->send();
  run(10s);
  a->send();  // the first message may be for the earlier process
  run(10s);
  EXPECT_FALSE(b->received.empty());
}

TEST_F(RelayedLinkTest, WithoutARelayNothingIsSentAfterAWhile) {
  one.relay.reset();
  other.relay.reset();
  run(10s);
  const std::uint64_t before = network.carried;
  run(5s);
  EXPECT_EQ(network.carried, before);
}

/// A host on the path sends the answers of the one way on the other.
TEST_F(RelayedLinkTest, AnAnswerIsWorthNothingOnAnotherWay) {
  std::vector<std::vector<std::byte>> answers;
  see = [&](const Packet& packet, const SocketAddress& to) {
    if (packet.from == kRelay && to == kA && kind_of(packet.bytes) == FrameKind::alive)
      answers.push_back(packet.bytes);
  };
  exchange();
  const std::uint64_t before = forwarded();
  see = nullptr;
  ASSERT_FALSE(answers.empty());
  direct = true;  // for what is injected
  for (const auto& answer : answers) inject(kB, kA, ConstBytes(answer).first(sizeof(seal::Tag) + 40));
  clock.advance(20us);
  a->engine.poll();
  direct = false;
  EXPECT_EQ(a->logged("is reached without a relay"), 0u);
  EXPECT_LT(exchange(), 5ms);
  EXPECT_GT(forwarded(), before);
}

/// A frame that no association of the endpoint opens.
std::vector<std::byte> of_a_stranger() {
  std::vector<std::byte> frame(sizeof(wire::FrameHeader) + sizeof(wire::SealTrailer));
  wire::FrameHeader header{};
  header.magic = wire::kMagic;
  header.version = wire::kVersion;
  header.kind = static_cast<std::uint8_t>(FrameKind::flow);
  header.flags = wire::frame_flag::kSealed;
  header.length = static_cast<std::uint16_t>(frame.size());
  header.checksum = 12345;
  std::memcpy(frame.data(), &header, sizeof header);
  return frame;
}

/// Frames that claim to come through the relay, but do not contain the number of the member.
TEST_F(RelayedLinkTest, FramesOfStrangersDoNotPassAsRelayed) {
  exchange();
  std::vector<std::byte> frame = of_a_stranger();
  wire::RelayTag tag{};
  tag.magic = wire::kRelayMagic;
  tag.peer = wire::rail_block(kB);
  const auto* const bytes = reinterpret_cast<const std::byte*>(&tag);
  frame.insert(frame.end(), bytes, bytes + sizeof tag);
  const std::uint64_t before = a->counters().refused_stale;
  inject(kRelay, kA, frame);
  run(1ms);
  EXPECT_EQ(a->counters().refused_stale, before + 1);
}

/// Frames that open in no association: each gets at most one notice, which is no longer than the frame. The
/// stranger may have forged its source.
TEST_F(RelayedLinkTest, AStrangerCausesNoMoreThanItSends) {
  exchange();
  const std::vector<std::byte> frame = of_a_stranger();
  std::size_t to_strangers = 0, answers = 0;
  see = [&](const Packet& packet, const SocketAddress& to) {
    if (to.port() != 666) return;
    to_strangers += packet.bytes.size();
    ++answers;
  };
  constexpr std::size_t kStrangers = 20;
  for (std::size_t i = 0; i < kStrangers; ++i) {
    inject(test::node_name(100 + static_cast<int>(i)).with_port(666), kA, frame);
    run(2ms);
  }
  run(2s);
  EXPECT_GT(answers, 0u);
  EXPECT_LE(answers, kStrangers);
  EXPECT_LE(to_strangers, kStrangers * frame.size());
}

/// Otherwise a host on the path could carry the questions of the direct way to the peer through the relay,
/// and the answers back as if they had come directly.
TEST_F(RelayedLinkTest, AQuestionIsAnsweredOnlyOnItsWay) {
  exchange();
  std::size_t asked = 0, answered = 0;
  see = [&](const Packet& packet, const SocketAddress& to) {
    if (kind_of(packet.bytes) != FrameKind::keep_alive || to == kRelay || to == kOtherRelay) return;
    wire::FrameHeader header;
    std::memcpy(&header, packet.bytes.data(), sizeof header);
    if (header.sequence != 0) return;  // the engine asks, for which any way will do
    std::vector<std::byte> diverted = packet.bytes;
    wire::RelayTag tag{};
    if (wire::tagged_frame(diverted, tag) != 0) {
      diverted.resize(diverted.size() - sizeof tag);
    } else {
      tag.magic = wire::kRelayMagic;
      tag.peer = wire::rail_block(packet.from);
      const auto* const at = reinterpret_cast<const std::byte*>(&tag);
      diverted.insert(diverted.end(), at, at + sizeof tag);
    }
    std::array<std::byte, kAnswerMax> answer;
    ++asked;
    answered += answer_keep_alive(credentials, diverted, to, to, answer) != 0 ? 1 : 0;
  };
  exchange_for(2s);
  see = nullptr;
  EXPECT_GT(asked, 8u);
  EXPECT_EQ(answered, 0u);
}

TEST_F(RelayedLinkTest, AnErrorOfTheDirectWayDoesNotConcernAPeerBehindARelay) {
  exchange();
  network.absent = kB;  // whoever has this address in the network of a
  for (int i = 0; i < 20; ++i) exchange_for(200ms);
  EXPECT_EQ(a->counters().sessions_closed, 0u);
}

/// Otherwise a flood would hide the answers, and frames would leave a way that works.
TEST_F(RelayedLinkTest, InAFloodAnswersHaveTheMark) {
  test::FakeEnvironment world;
  const SocketAddress name = test::node_name(5);
  RelayedLink link(std::make_unique<test::FakeLink>(network, name), {credentials, name, 1, {kRelay}},
                   world.environment());
  std::vector<std::byte> marks;
  see = [&](const Packet& packet, const SocketAddress& to) {
    std::array<std::byte, kAnswerMax> answer;
    if (packet.from == name && to == kB && answer_keep_alive(credentials, packet.bytes, to, to, answer) != 0)
      marks.push_back(answer[offsetof(wire::FrameHeader, session)]);
  };
  const std::array<std::byte, sizeof(wire::FrameHeader)> frame{};
  for (const bool flood : {false, true}) {
    link.thin({.mark = 0x17, .on = flood});
    link::send_frame(link, frame, {kB});
    world.clock.advance(1s);
  }
  EXPECT_EQ(marks, (std::vector<std::byte>{std::byte{0}, std::byte{0x17}}));
}

TEST_F(RelayedLinkTest, FramesHaveSpaceForTheTag) {
  test::FakeEnvironment world;
  const RelayedLink link(std::make_unique<test::FakeLink>(network, kA), {credentials, kA, 1, {kRelay}},
                         world.environment());
  EXPECT_EQ(link.frame_max(), 1472 - sizeof(wire::RelayTag));
}

TEST(KeepAliveAnswer, RepeatsTheTag) {
  const seal::Credentials keys = test::credentials({"0123456789abcdef"});
  std::vector<std::byte> question(sizeof(wire::FrameHeader) + sizeof(wire::SealTrailer));
  wire::FrameHeader header{};
  header.magic = wire::kMagic;
  header.version = wire::kVersion;
  header.kind = static_cast<std::uint8_t>(FrameKind::keep_alive);
  header.flags = wire::frame_flag::kSealed;
  header.length = static_cast<std::uint16_t>(question.size());
  wire::SealTrailer trailer{};
  trailer.counter = 9;
  seal::seal_keep_alive(*keys.keys[0], keys.mode, header, kB, trailer);
  std::memcpy(question.data(), &header, sizeof header);
  std::memcpy(question.data() + sizeof header, &trailer, sizeof trailer);
  std::array<std::byte, kAnswerMax> answer;
  const SocketAddress rail = test::node_name(7);
  EXPECT_EQ(answer_keep_alive(keys, question, kB, kB, answer), sizeof(seal::KeepAliveAnswer));
  EXPECT_EQ(answer_keep_alive(keys, question, kB, rail, answer), 0u) << "it was diverted";
  wire::RelayTag tag{};
  tag.magic = wire::kRelayMagic;
  tag.member = 5;
  tag.peer = wire::rail_block(kA);
  const auto* const bytes = reinterpret_cast<const std::byte*>(&tag);
  question.insert(question.end(), bytes, bytes + sizeof tag);
  const std::size_t size = answer_keep_alive(keys, question, kB, rail, answer);
  ASSERT_EQ(size, sizeof(seal::KeepAliveAnswer) + sizeof tag) << "through a relay, the name is asked";
  wire::RelayTag repeated;
  ASSERT_EQ(wire::tagged_frame(ConstBytes(answer).first(size), repeated), sizeof(seal::KeepAliveAnswer));
  EXPECT_EQ(std::uint32_t{repeated.member}, 5u);
  EXPECT_EQ(wire::address_of(repeated.peer, 0), kA);
  EXPECT_EQ(repeated.hops, wire::kRelayHops);
  const SocketAddress former = test::node_name(8);
  EXPECT_EQ(answer_keep_alive(keys, question, former, kB, answer), size) << "the name has changed";
  EXPECT_EQ(answer_keep_alive(keys, question, former, rail, answer), 0u) << "it was diverted";
}

}  // namespace
}  // namespace cluster::relay
