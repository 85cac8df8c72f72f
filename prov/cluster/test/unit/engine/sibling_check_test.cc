// Endpoints that the target has not in its address vector, of processes of which it knows another endpoint: they are taken
// for members if that one says so, and nothing that others write changes that.
#include "engine/sibling_check.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <vector>

#include "protocol/region_table.h"
#include "support/forged_frame.h"
#include "support/node.h"

namespace cluster::engine {
namespace {

using test::ForgedFrame;
using test::kA;
using test::kB;
using test::kUnknownSource;
using test::Node;
using test::NodeKind;
using wire::FrameKind;

const SocketAddress kContext = kB.with_port(9300);  // of the process of kB

/// A process with one endpoint on its roster, whose name it may have made up.
struct Process {
  explicit Process(const SocketAddress& name, const std::optional<seal::Credentials>& own = std::nullopt)
      : entry(roster, name), credentials(own) {}
  NodeKind kind() const {
    NodeKind kind;
    kind.credentials = credentials;
    kind.roster = roster;
    return kind;
  }
  std::shared_ptr<EndpointRoster> roster = std::make_shared<EndpointRoster>();
  EndpointRoster::Entry entry;
  std::optional<seal::Credentials> credentials;
};

class SiblingCheckTest : public test::EngineTest {
 protected:
  explicit SiblingCheckTest(const std::optional<seal::Credentials>& credentials = std::nullopt)
      : process(kB, credentials),
        target(network, kA, kB, 1000, nullptr, test::node_settings(), {.credentials = credentials}),
        known(network, kB, kA, 1001, nullptr, test::node_settings(), process.kind()) {
    target.engine.attach(target.book, {.tx_queue = &target.sent, .rx_queue = &target.received, .regions = &regions});
    regions.add(1, {.base = memory.data(), .length = memory.size(), .readable = true, .writable = true});
    network.drop = [this](const test::FakeNetwork::Packet& packet, const SocketAddress& to) {
      wire::FrameView view;
      if (wire::admit(packet.bytes, view) != wire::Refusal::none) return false;
      if (view.kind == FrameKind::sibling_request && to == kB) ++requests;
      if (view.kind == FrameKind::sibling_request) last_request = packet.bytes;
      if (view.kind == FrameKind::flow && view.session == 0 && to == kA) ++calls;
      return (view.kind == FrameKind::sibling_response && mute) || (view.kind == FrameKind::sibling_request && deaf);
    };
  }
  std::unique_ptr<Node> caller(const SocketAddress& name, const NodeKind& kind, std::uint64_t epoch = 1002) {
    return std::make_unique<Node>(network, name, kA, epoch, nullptr, test::node_settings(), kind);
  }
  /// Writes a word into the target's memory, and returns how that ended.
  Status write(Node& from, std::uint64_t word = 0x1111) {
    from.word = word;
    const ConstBytes slice = as_bytes(&from.word, sizeof from.word);
    const protocol::RmaIov range{0, 1, slice.size()};
    protocol::WriteOp op;
    op.remote = {&range, 1};
    op.slices = {&slice, 1};
    op.length = slice.size();
    EXPECT_EQ(from.engine.write(op), Status::ok);
    std::optional<Status> status;
    const auto any = [](const protocol::Completion&) { return true; };
    for (int turn = 0; turn < 1000 && !status; ++turn) {
      clock.now() < awake ? pass(target, from) : pass(target, known, from);
      from.sent.drain(1, any, [&](const protocol::Completion& each) { status = each.status; });
    }
    return status.value_or(Status::unreachable);
  }
  std::uint64_t written() const {
    std::uint64_t word = 0;
    std::memcpy(&word, memory.data(), sizeof word);
    return word;
  }

  std::size_t requests = 0;  ///< what these count outlives the nodes, which say goodbye through the network
  std::size_t calls = 0;
  bool mute = false;  ///< answers about siblings are lost
  bool deaf = false;  ///< and so are the questions
  Time awake{};       ///< until then the known endpoint does nothing
  std::vector<std::byte> last_request;
  std::array<std::byte, 64> memory{};
  protocol::RegionTable regions;
  Process process;
  Node target;
  Node known;
};

struct SealedSiblingCheckTest : SiblingCheckTest {
  SealedSiblingCheckTest() : SiblingCheckTest(test::credentials({"a key of the job"})) {}
};

TEST_F(SealedSiblingCheckTest, TheQuestionIsSealedLikeEveryFrame) {
  const auto context = caller(kContext, process.kind());
  EXPECT_EQ(write(*context), Status::ok);
  EXPECT_EQ(target.counters().siblings_confirmed, 1u);
  const Process impostor(kB, process.credentials);
  const auto other = caller(kUnknownSource, impostor.kind(), 1003);
  EXPECT_EQ(write(*other), Status::access);
}

TEST_F(SiblingCheckTest, AnEndpointOfAKnownProcessIsAMember) {
  const auto context = caller(kContext, process.kind());
  EXPECT_EQ(write(*context), Status::ok) << "the first access, too";
  EXPECT_EQ(written(), 0x1111u);
  EXPECT_EQ(write(*context, 0x2222), Status::ok);
  EXPECT_EQ(target.counters().siblings_confirmed, 1u);
  EXPECT_EQ(target.counters().refused_access, 0u);
  EXPECT_EQ(requests, 1u);
}

TEST_F(SiblingCheckTest, TheFirstAccessWaitsForASiblingThatComputes) {
  awake = clock.now() + 20ms;
  const auto context = caller(kContext, process.kind());
  EXPECT_EQ(write(*context), Status::ok);
  EXPECT_GT(calls, 1u);
  EXPECT_LE(requests, calls);
}

TEST_F(SiblingCheckTest, AnotherProcessThatNamesItAsSiblingIsNone) {
  const Process impostor(kB);
  const auto other = caller(kUnknownSource, impostor.kind());
  EXPECT_EQ(write(*other), Status::access);
  EXPECT_EQ(write(*other), Status::access);
  EXPECT_EQ(written(), 0u);
  EXPECT_EQ(target.counters().siblings_confirmed, 0u);
  EXPECT_GT(known.counters().refused_stale, 0u) << "it was asked, and said nothing";
}

TEST_F(SiblingCheckTest, OnlyAMemberIsAsked) {
  target.book.remove(0);
  const auto context = caller(kContext, process.kind());
  EXPECT_EQ(write(*context), Status::access);
  EXPECT_EQ(requests, 0u);
  target.book.insert(kB);
  clock.advance(30ms);
  write(*context);
  EXPECT_EQ(write(*context), Status::ok) << "its sibling was inserted meanwhile";
}

TEST_F(SiblingCheckTest, ItIsOneOnlyAsLongAsItsSibling) {
  const auto context = caller(kContext, process.kind());
  EXPECT_EQ(write(*context), Status::ok);
  target.book.remove(0);
  EXPECT_EQ(write(*context, 0x2222), Status::access);
  EXPECT_EQ(written(), 0x1111u);
}

TEST_F(SiblingCheckTest, ASiblingThatDoesNotAnswerDelaysTheCallerAndNoMore) {
  mute = true;
  const auto context = caller(kContext, process.kind());
  EXPECT_EQ(write(*context), Status::access);
  EXPECT_LE(requests, calls + 1) << "one for each frame at most";
  mute = false;
  EXPECT_EQ(write(*context), Status::access) << "it is asked again by now";
  clock.advance(30ms);
  write(*context);
  EXPECT_EQ(write(*context), Status::ok);
}

TEST_F(SiblingCheckTest, AnAnswerIsForOneCallerAndOneSession) {
  mute = true;
  const Process impostor(kB);
  const auto other = caller(kUnknownSource, impostor.kind());
  EXPECT_EQ(write(*other), Status::access);
  wire::FrameView asked;
  ASSERT_EQ(wire::admit(last_request, asked), wire::Refusal::none);
  ASSERT_EQ(asked.kind, FrameKind::sibling_request);
  const auto say = [&](std::uint32_t session, std::uint64_t challenge, const SocketAddress& name,
                       const SocketAddress& from) {
    ForgedFrame frame;
    frame.header.kind = static_cast<std::uint8_t>(FrameKind::sibling_response);
    frame.header.sequence = session;
    wire::set_challenge(frame.header, challenge);
    const wire::RailBlock block = wire::rail_block(name);
    frame.tail.resize(sizeof block);
    std::memcpy(frame.tail.data(), &block, sizeof block);
    inject(from, kA, frame.bytes());
    pass(target);
    return target.counters().siblings_confirmed;
  };
  mute = false;
  EXPECT_EQ(say(asked.sequence.value, asked.challenge() + 1, kUnknownSource, kB), 0u) << "a guess";
  EXPECT_EQ(say(asked.sequence.value + 1, asked.challenge(), kUnknownSource, kB), 0u) << "another session";
  EXPECT_EQ(say(asked.sequence.value, asked.challenge(), kContext, kB), 0u) << "another caller";
  const SocketAddress neighbour = kUnknownSource.with_port(667);
  EXPECT_EQ(say(asked.sequence.value, asked.challenge(), neighbour, kB), 0u) << "another one of its host";
  EXPECT_EQ(say(asked.sequence.value, asked.challenge(), kUnknownSource, kContext), 0u) << "another of the sibling's";
  EXPECT_EQ(say(asked.sequence.value, asked.challenge(), kUnknownSource, kUnknownSource), 0u) << "not of the sibling";
  clock.advance(10s);
  EXPECT_EQ(say(asked.sequence.value, asked.challenge(), kUnknownSource, kB), 0u) << "too late";
  EXPECT_EQ(target.counters().refused_stale, 7u);
}

TEST_F(SiblingCheckTest, ItsNameIsWorthNothingToItsSuccessor) {
  {
    const auto context = caller(kContext, process.kind());
    EXPECT_EQ(write(*context), Status::ok);
  }
  pass(target, known);
  const Process impostor(kB);
  const auto other = caller(kContext, impostor.kind(), 2000);
  EXPECT_EQ(write(*other, 0x2222), Status::access);
  EXPECT_EQ(written(), 0x1111u);
}

/// Any host can name any member as its sibling, and write any source into its frame.
TEST_F(SiblingCheckTest, AFloodDrawsNoMoreThanOneShortRequestEach) {
  constexpr std::size_t kCalls = 20'000;
  deaf = true;
  for (std::size_t i = 0; i < kCalls; ++i) {
    const SocketAddress source = kUnknownSource.with_port(static_cast<std::uint16_t>(1024 + i));
    ForgedFrame call = ForgedFrame::call(source, static_cast<std::uint32_t>(i + 1), 1000);
    call.sibling = kB;
    call.header.transmission = 1;
    EXPECT_LT(sizeof(wire::FrameHeader) + sizeof(wire::RailBlock), call.bytes().size());
    inject(source, kA, call.bytes());
    if (i % 64 == 0) pass(target);
  }
  pass(target);
  EXPECT_GT(requests, 0u);
  EXPECT_LE(requests, 12'000u) << "a burst of 8192, and 10000 a second";
  EXPECT_TRUE(target.engine.stats()->peers.empty()) << "nothing is kept of them";
}

}  // namespace
}  // namespace cluster::engine
