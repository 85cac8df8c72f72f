// Endpoints missing from the target's address vector whose process has another endpoint there. The target
// accepts them as members if that endpoint confirms it; no frame from others changes that.
#include "network/sibling_check.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <vector>

#include "network/flood_watch.h"
#include "protocol/region_table.h"
#include "support/forged_frame.h"
#include "support/node.h"

namespace cluster::engine {
namespace {

using network::FloodWatch;
using test::ForgedFrame;
using test::kA;
using test::kB;
using test::kUnknownSource;
using test::Node;
using test::NodeKind;
using wire::FrameKind;

const SocketAddress kContext = kB.with_port(9300);   // of the process of kB
const SocketAddress kImpostor = kB.with_port(9302);  // of another process of its host

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
  static constexpr int kTurns = 5000;  ///< of a millisecond: longer than the target waits for a sibling
  static constexpr std::size_t kMany = 100;

  explicit SiblingCheckTest(const std::optional<seal::Credentials>& credentials = std::nullopt)
      : process(kB, credentials),
        target(network, kA, kB, 1000, nullptr, many_flows(), {.credentials = credentials}),
        known(network, kB, kA, 1001, nullptr, test::node_settings(), process.kind()) {
    target.engine.attach(target.book,
                         {.tx_queue = &target.sent, .rx_queue = &target.received, .regions = &regions});
    regions.add(1, {.base = memory.data(), .length = memory.size(), .readable = true, .writable = true});
    network.drop = [this](const test::FakeNetwork::Packet& packet, const SocketAddress& to) {
      wire::FrameView view;
      if (wire::admit(packet.bytes, view) != wire::Refusal::none) return false;
      if (view.kind == FrameKind::sibling_request && to == kB) ++requests;
      if (view.kind == FrameKind::sibling_request) last_request = packet.bytes;
      return view.kind == FrameKind::sibling_response && mute;
    };
  }
  static transport::EngineSettings many_flows() {
    transport::EngineSettings settings = test::node_settings();
    settings.flows_max = 2 * kMany;
    return settings;
  }
  std::unique_ptr<Node> caller(const SocketAddress& name, const NodeKind& kind, std::uint64_t epoch = 1002) {
    return std::make_unique<Node>(network, name, kA, epoch, nullptr, test::node_settings(), kind);
  }
  static void post_write(Node& from, std::uint64_t word) {
    from.word = word;
    from.write();
  }
  /// How the oldest write ended, if it has.
  static std::optional<Status> written_by(Node& from) {
    std::optional<Status> status;
    const auto any = [](const protocol::Completion&) { return true; };
    from.sent.drain(1, any, [&](const protocol::Completion& each) { status = each.status; });
    return status;
  }
  /// Writes a word into the target's memory, and returns how that ended.
  Status write(Node& from, std::uint64_t word = 0x1111) {
    post_write(from, word);
    std::optional<Status> status;
    for (int turn = 0; turn < kTurns && !status; ++turn) {
      clock.now() < awake ? pass(target, from) : pass(target, known, from);
      status = written_by(from);
    }
    return status.value_or(Status::unreachable);
  }
  std::uint64_t written() const {
    std::uint64_t word = 0;
    std::memcpy(&word, memory.data(), sizeof word);
    return word;
  }

  std::size_t requests = 0;  ///< what these count outlives the nodes, which say goodbye through the network
  bool mute = false;         ///< answers about siblings are lost
  Time awake{};              ///< until then the known endpoint does nothing
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
  const auto other = caller(kImpostor, impostor.kind(), 1003);
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

TEST_F(SiblingCheckTest, InAFloodMembersAloneAreAnswered) {
  int answers = 0;
  const auto answers_to = [&](const SocketAddress& source) {
    answers = 0;
    network.drop = [&](const test::FakeNetwork::Packet& packet, const SocketAddress& to) {
      wire::FrameView view;
      const bool answer =
          wire::admit(packet.bytes, view) == wire::Refusal::none && view.kind == FrameKind::sibling_response;
      answers += answer && to == source ? 1 : 0;
      return answer;
    };
    ForgedFrame frame;
    frame.header.kind = static_cast<std::uint8_t>(FrameKind::sibling_request);
    frame.header.sequence = 7;
    const wire::RailBlock block = wire::rail_block(kB);
    const auto* const bytes = reinterpret_cast<const std::byte*>(&block);
    frame.tail.assign(bytes, bytes + sizeof block);
    inject(source, kB, frame.bytes());
    pass(known);
    network.drop = nullptr;
    return answers;
  };
  EXPECT_EQ(answers_to(kUnknownSource), 1);
  const std::vector<std::byte> nonsense(40);
  for (std::int64_t sent = 0; sent <= FloodWatch::kBurst + 1000; sent += 100) {
    for (int i = 0; i < 100; ++i) inject(kUnknownSource, kB, nonsense);
    pass(known);
  }
  ASSERT_TRUE(network.thinning.on);
  EXPECT_EQ(answers_to(kUnknownSource), 0);
  EXPECT_EQ(answers_to(kA), 1);
}

TEST_F(SiblingCheckTest, TheFirstAccessWaitsForASiblingThatComputes) {
  awake = clock.now() + 20ms;
  const auto context = caller(kContext, process.kind());
  EXPECT_EQ(write(*context), Status::ok);
  EXPECT_EQ(target.counters().refused_access, 0u);
  EXPECT_LE(requests, 2u);
}

TEST_F(SiblingCheckTest, TimeInWhichTheTargetStoodStillIsNotTheSiblings) {
  const auto context = caller(kContext, process.kind());
  post_write(*context, 0x1111);
  for (int turn = 0; turn < 1000; ++turn) pass(known, *context);
  for (int turn = 0; turn < 100; ++turn) pass(target, *context);
  std::optional<Status> status = written_by(*context);
  for (int turn = 0; turn < kTurns && !status; ++turn) {
    pass(target, known, *context);
    status = written_by(*context);
  }
  EXPECT_EQ(status, Status::ok);
}

/// As an OpenSHMEM program that first makes all its contexts and then uses them: each answer is for one of
/// them, and none invalidates another's answer.
TEST_F(SiblingCheckTest, ManyBeginAtOnce) {
  std::vector<std::unique_ptr<Node>> contexts;
  for (std::size_t i = 0; i < kMany; ++i) {
    const auto port = static_cast<std::uint16_t>(kContext.port() + i);
    contexts.push_back(caller(kContext.with_port(port), process.kind(), 2000 + i));
    post_write(*contexts.back(), i);
  }
  std::vector<std::optional<Status>> ends(kMany);
  for (int turn = 0; turn < 100; ++turn) {
    clock.advance(1ms);
    target.engine.poll();
    known.engine.poll();
    for (std::size_t i = 0; i < kMany; ++i) {
      contexts[i]->engine.poll();
      if (!ends[i]) ends[i] = written_by(*contexts[i]);
    }
  }
  for (const std::optional<Status>& each : ends) EXPECT_EQ(each, Status::ok);
  EXPECT_EQ(target.counters().siblings_confirmed, kMany);
}

TEST_F(SiblingCheckTest, AnotherProcessThatNamesItAsSiblingIsNone) {
  const Process impostor(kB);
  const auto other = caller(kContext, impostor.kind());
  EXPECT_EQ(write(*other), Status::access);
  EXPECT_EQ(write(*other), Status::access);
  EXPECT_EQ(written(), 0u);
  EXPECT_EQ(target.counters().siblings_confirmed, 0u);
  EXPECT_GT(known.counters().refused_stale, 0u) << "it was asked, and said nothing";
}

TEST_F(SiblingCheckTest, AnotherHostDrawsNoQuestion) {
  const Process impostor(kB);
  const auto other = caller(kUnknownSource, impostor.kind());
  const Time begin = clock.now();
  EXPECT_EQ(write(*other), Status::access);
  EXPECT_LT(clock.now() - begin, 1s) << "nor is an answer waited for";
  EXPECT_EQ(requests, 0u);
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
  const Time begin = clock.now();
  EXPECT_EQ(write(*context), Status::access);
  EXPECT_GT(clock.now() - begin, 1900ms);
  EXPECT_LT(clock.now() - begin, 3s);
  EXPECT_LE(requests, 101u) << "one in 20 ms";
  mute = false;
  EXPECT_EQ(write(*context), Status::access) << "it is asked again by now";
  clock.advance(30ms);
  write(*context);
  EXPECT_EQ(write(*context), Status::ok);
}

TEST_F(SiblingCheckTest, AnAnswerIsForOneCallerAndOneSession) {
  mute = true;
  const Process impostor(kB);
  const auto other = caller(kImpostor, impostor.kind());
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
  EXPECT_EQ(say(asked.sequence.value, asked.challenge() + 1, kImpostor, kB), 0u) << "a guess";
  EXPECT_EQ(say(asked.sequence.value + 1, asked.challenge(), kImpostor, kB), 0u) << "another session";
  EXPECT_EQ(say(asked.sequence.value, asked.challenge(), kContext, kB), 0u) << "another caller";
  const SocketAddress neighbour = kImpostor.with_port(667);
  EXPECT_EQ(say(asked.sequence.value, asked.challenge(), neighbour, kB), 0u) << "another one of its host";
  EXPECT_EQ(say(asked.sequence.value, asked.challenge(), kImpostor, kContext), 0u)
      << "another of the sibling's";
  EXPECT_EQ(say(asked.sequence.value, asked.challenge(), kImpostor, kUnknownSource), 0u)
      << "not of the sibling";
  EXPECT_EQ(target.counters().refused_stale, 6u);
  EXPECT_EQ(say(asked.sequence.value, asked.challenge(), kImpostor, kB), 1u) << "all of it is right";
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
TEST_F(SiblingCheckTest, OpeningsThatProveNoAddressDrawNoQuestion) {
  constexpr std::size_t kCalls = 20'000;
  for (std::size_t i = 0; i < kCalls; ++i) {
    const SocketAddress source = kB.with_port(static_cast<std::uint16_t>(10'000 + i));
    ForgedFrame call = ForgedFrame::call(source, static_cast<std::uint32_t>(i + 1), 1000);
    call.sibling = kB;
    call.header.transmission = 1;
    inject(source, kA, call.bytes());
    if (i % 64 == 0) pass(target);
  }
  pass(target);
  EXPECT_EQ(requests, 0u);
}

}  // namespace
}  // namespace cluster::engine
