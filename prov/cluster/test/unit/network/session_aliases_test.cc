// Whole engines with two interfaces each: under all its addresses a peer stays one peer with one session.
#include <gtest/gtest.h>

#include <optional>

#include "engine/engine.h"
#include "multipath/link_bundle.h"
#include "shm/local_listener.h"
#include "support/fake_network.h"
#include "wire/control.h"

namespace cluster::engine {
namespace {

using test::FakeLink;
using test::FakeNetwork;

constexpr int kRails = 2;

SocketAddress address(int rail, int node) {
  const std::byte ip[] = {std::byte{10}, std::byte{0}, static_cast<std::byte>(rail),
                          static_cast<std::byte>(node)};
  return SocketAddress::v4(ip, 9228);
}

/// An endpoint that is called by its address on rail 0.
struct RailNode {
  /// `claimed`: whose address it takes for its own on the second rail; `subnet`: of which subnet that is.
  RailNode(FakeNetwork& network, int number, int claimed, int subnet = 1)
      : world{.clock = network.clock(), .random = test::FakeRandom(static_cast<std::uint64_t>(number))},
        engine(parts(network, number, claimed, subnet)) {
    engine.attach(book, {.tx_queue = &sent, .rx_queue = &received});
  }
  RailNode(FakeNetwork& network, int number) : RailNode(network, number, number) {}
  EngineParts parts(FakeNetwork& network, int number, int claimed, int subnet) {
    std::vector<std::unique_ptr<link::Link>> links;
    std::vector<multipath::Rail> own;
    for (int rail = 0; rail < kRails; ++rail) {
      links.push_back(std::make_unique<FakeLink>(network, address(rail, number)));
      own.push_back(
          {rail == 0 ? address(0, number) : address(subnet, claimed), 24, "eth" + std::to_string(rail)});
    }
    EngineSettings settings;
    settings.linger = 0s;
    return {.environment = {world.clock, world.random, world.log, world.counters},
            .settings = settings,
            .name = address(0, number),
            .epoch = 1000,
            .link = std::make_unique<multipath::LinkBundle>(std::move(links)),
            .local_listener = nullptr,
            .resources = nullptr,
            .rails = std::move(own)};
  }
  void send(AddressTable::Handle to) {
    const ConstBytes slice = as_bytes(&word, sizeof word);
    EXPECT_EQ(engine.send({.slices = {&slice, 1}, .length = sizeof word, .to = to}), Status::ok);
  }
  std::vector<PeerStats> peers() const {
    const std::optional<EndpointStats> seen = engine.stats();
    EXPECT_TRUE(seen.has_value());
    return seen ? seen->peers : std::vector<PeerStats>{};
  }

  struct World {
    test::FakeClock& clock;
    test::FakeRandom random;
    test::FakeLog log{};
    Counters counters{};
  } world;
  AddressTable book;
  protocol::CompletionQueue sent;
  protocol::CompletionQueue received;
  std::uint64_t word = 0x1234;
  Engine engine;
};

struct SessionAliasesTest : testing::Test {
  SessionAliasesTest() {
    network.drop = [this](const FakeNetwork::Packet& packet, const SocketAddress& to) {
      return packet.from.ip()[2] != to.ip()[2] || to.ip()[2] == dead;
    };
  }
  void pass(int turns = 200) {
    for (int i = 0; i < turns; ++i) {
      clock.advance(5us);
      a.engine.poll();
      b.engine.poll();
    }
  }
  void expect_one_session() {
    for (RailNode* node : {&a, &b}) {
      EXPECT_EQ(node->world.counters.sessions_opened, 1u);
      EXPECT_EQ(node->world.counters.sessions_closed, 0u);
      EXPECT_EQ(node->peers().size(), 1u);
    }
  }

  test::FakeClock clock;
  FakeNetwork network{clock, 1};
  std::byte dead{0xFF};  ///< a rail that carries nothing
  RailNode a{network, 1};
  RailNode b{network, 2};
};

TEST_F(SessionAliasesTest, OnceItIsKnownEachOfItsAddressesIsThePeer) {
  const auto first = a.book.insert(address(0, 2));
  const auto second = a.book.insert(address(1, 2));
  a.send(first);
  pass();
  a.send(second);
  pass();
  EXPECT_EQ(b.engine.unexpected_messages(), 2u);
  expect_one_session();
}

TEST_F(SessionAliasesTest, APeerIsFoundByTheAddressThatTheApplicationKnows) {
  const auto caller = b.book.insert(address(1, 1));
  a.send(a.book.insert(address(0, 2)));
  pass();
  b.send(caller);
  pass();
  EXPECT_EQ(a.engine.unexpected_messages(), 1u);
  EXPECT_EQ(b.engine.unexpected_messages(), 1u);
  expect_one_session();
  EXPECT_EQ(b.peers().front().name, address(1, 1));
}

TEST_F(SessionAliasesTest, AnAddressOfAnotherRailOpensTheSessionThere) {
  dead = std::byte{0};
  b.book.insert(address(1, 1));  // a caller is answered where the application knows it
  a.send(a.book.insert(address(1, 2)));
  pass();
  EXPECT_EQ(b.engine.unexpected_messages(), 1u);
  EXPECT_EQ(a.peers().front().flow->paths.front().link, 1u);
}

TEST_F(SessionAliasesTest, AClaimedAddressOfAnotherEndpointGetsNoMessages) {
  RailNode owner{network, 3};
  RailNode impostor{network, 4, 3};
  const auto turns = [&] {
    for (int i = 0; i < 200; ++i) {
      pass(1);
      owner.engine.poll();
      impostor.engine.poll();
    }
  };
  a.send(a.book.insert(address(0, 4)));
  turns();
  EXPECT_EQ(impostor.engine.unexpected_messages(), 1u);
  EXPECT_EQ(owner.world.counters.refused_stale, 1u) << "it was asked whether it is the other one";
  a.send(a.book.insert(address(1, 3)));
  turns();
  EXPECT_EQ(owner.engine.unexpected_messages(), 1u);
  EXPECT_EQ(impostor.engine.unexpected_messages(), 1u);
}

/// A peer knows the session, and can write any sender into a frame.
/// A source could list the address of any host, and have frames of full length sent there.
TEST_F(SessionAliasesTest, AFarAddressIsTriedOnlyIfItsOwnerIsInTheAddressVector) {
  constexpr int kFar = 9;
  for (const bool known : {false, true}) {
    const int number = known ? 5 : 6;
    std::size_t sent_far = 0;  // outlives the caller, which says goodbye through the network
    RailNode caller{network, number, number, kFar};
    network.drop = [&](const FakeNetwork::Packet&, const SocketAddress& to) {
      sent_far += to == address(kFar, number) ? 1 : 0;
      return false;
    };
    if (known) a.book.insert(address(0, number));
    const auto to = caller.book.insert(address(0, 1));
    for (int i = 0; i < 40; ++i) {
      caller.send(to);
      a.engine.poll();
      caller.engine.poll();
      pass(20);
      caller.engine.poll();
    }
    EXPECT_EQ(sent_far != 0, known);
  }
}

TEST_F(SessionAliasesTest, AnAnswerToNothingThatWasSentThereMakesNoAlias) {
  std::uint32_t session = 0;  // outlives the nodes, which say goodbye through the network
  RailNode owner{network, 3};
  RailNode impostor{network, 4, 3};
  network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress& to) {
    wire::FrameView view;
    const bool sound = wire::admit(packet.bytes, view) == wire::Refusal::none;
    if (sound && to == address(0, 1) && view.session != 0) session = view.session;
    return packet.from.ip()[2] != to.ip()[2];
  };
  const auto turns = [&] {
    for (int i = 0; i < 200; ++i) {
      pass(1);
      owner.engine.poll();
      impostor.engine.poll();
    }
  };
  a.send(a.book.insert(address(0, 4)));
  turns();
  ASSERT_NE(session, 0u);
  wire::FrameView asked;
  asked.sequence = {session};
  const wire::ControlFrame answer = wire::ControlFrame::path_response(asked);
  const link::Path to_a{address(1, 1), {}, false, 0};
  link::OutFrame frame;
  frame.path = &to_a;
  frame.add(answer.bytes());
  const std::uint64_t refused = a.world.counters.refused_stale;
  network.carry(address(1, 3), frame);
  turns();
  EXPECT_EQ(a.world.counters.refused_stale, refused + 1);
  a.send(a.book.insert(address(1, 3)));
  turns();
  EXPECT_EQ(owner.engine.unexpected_messages(), 1u);
  EXPECT_EQ(impostor.engine.unexpected_messages(), 1u);
}

/// Found by the simulator (seeds 1739386900825749531 and 17443150295646211156, with keys): the only path that
/// had ever worked led nowhere, the peer restarted, and its next incarnation was sent challenges alone.
TEST_F(SessionAliasesTest, ARestartedPeerIsNoticedIfOnlyChallengesReachIt) {
  const SocketAddress name = address(0, 3);
  std::byte works{0};  // the rail by which frames reach the name
  RailNode before{network, 3};
  std::optional<RailNode> after;
  network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress& to) {
    const bool to_peer = to == name || to == address(1, 3);
    return to_peer && (to != name || packet.from.ip()[2] != works);
  };
  const auto turns = [&](RailNode& peer, Duration step) {
    for (int i = 0; i < 200; ++i) {
      clock.advance(step);
      a.engine.poll();
      peer.engine.poll();
    }
  };
  const auto handle = a.book.insert(name);
  a.send(handle);
  turns(before, 5us);
  ASSERT_EQ(before.engine.unexpected_messages(), 1u);
  works = std::byte{1};
  after.emplace(network, 3);  // takes the place of the other one
  a.send(handle);
  turns(*after, 5ms);
  EXPECT_EQ(a.world.counters.sessions_closed, 1u);
  network.drop = nullptr;
}

/// The owner of a claimed address does not know the session, and is not asked about the peer.
TEST_F(SessionAliasesTest, AnotherHostThatIsChallengedEndsNoSession) {
  RailNode owner{network, 3};
  RailNode claimant{network, 4, 3};
  std::size_t resets = 0;
  network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress& to) {
    wire::FrameView view;
    const bool sound = wire::admit(packet.bytes, view) == wire::Refusal::none;
    resets += sound && to == address(1, 1) && view.kind == wire::FrameKind::reset ? 1 : 0;
    return packet.from.ip()[2] != to.ip()[2];
  };
  a.send(a.book.insert(address(0, 4)));
  for (int i = 0; i < 200; ++i) {
    pass(1);
    owner.engine.poll();
    claimant.engine.poll();
  }
  network.drop = nullptr;
  EXPECT_NE(resets, 0u);
  EXPECT_EQ(a.world.counters.sessions_closed, 0u);
  EXPECT_EQ(claimant.engine.unexpected_messages(), 1u);
}

TEST_F(SessionAliasesTest, EachOfItsOwnAddressesIsTheEndpointItself) {
  for (int rail = 0; rail < kRails; ++rail) a.send(a.book.insert(address(rail, 1)));
  pass(1);
  EXPECT_EQ(a.engine.unexpected_messages(), 2u);
  EXPECT_EQ(network.carried, 0u);
}

}  // namespace
}  // namespace cluster::engine
