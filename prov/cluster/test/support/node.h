// Whole engines between fake links, and helpers for tests of them: a node that numbers its messages, and a
// common clock. Which node sends what, and which frames are forged, is up to the test.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/engine.h"
#include "relay/relayed_link.h"
#include "seal/sealed_link.h"
#include "shm/local_listener.h"
#include "support/completions.h"
#include "support/fake_network.h"
#include "support/forged_frame.h"
#include "support/seal_keys.h"

namespace cluster::test {

inline constexpr std::size_t kFlowsMax = 4;

inline transport::EngineSettings node_settings() {
  transport::EngineSettings settings;
  settings.flows_max = kFlowsMax;
  settings.peer_timeout = 5s;
  settings.outage = 0s;  // most tests have one peer, whose silence would be an outage
  settings.end_abandoned = false;
  settings.linger = 0s;  // the clock stands still while an engine closes
  return settings;
}

inline SocketAddress node_name(int last) {
  const std::byte ip[] = {std::byte{10}, std::byte{0}, std::byte{0}, static_cast<std::byte>(last)};
  return SocketAddress::v4(ip, 9228);
}

inline const SocketAddress kA = node_name(1);
inline const SocketAddress kB = node_name(2);
inline const SocketAddress kUnknownSource = node_name(3).with_port(666);

/// What few nodes have otherwise than most.
struct NodeKind {
  engine::EndpointType type = engine::EndpointType::rdm;
  std::size_t frame_max = 1472;
  std::optional<seal::Credentials> credentials = std::nullopt;  ///< it seals
  std::vector<SocketAddress> relays = {};                       ///< that it uses; only with credentials
  std::shared_ptr<engine::EndpointRoster> roster = nullptr;     ///< of the process that it belongs to
  bool enabled = true;
  std::function<std::unique_ptr<link::ProcessProbe>()> make_probe = nullptr;
  std::vector<engine::MakeTransport> further_transports = {};
  protocol::EndpointBindings bindings = {};  ///< beside the queues, which every node has
};

/// An endpoint that knows one peer, under handle 0.
struct Node {
  Node(FakeNetwork& network, const SocketAddress& name, const SocketAddress& peer, std::uint64_t epoch,
       std::unique_ptr<shm::LocalListener> listener = nullptr,
       const transport::EngineSettings& settings = node_settings(), const NodeKind& kind = {})
      : engine(engine::EngineParts{.environment = world(network, epoch).environment(),
                                   .settings = settings,
                                   .name = name,
                                   .epoch = epoch,
                                   .link = make_link(network, name, kind),
                                   .local_listener = std::move(listener),
                                   .resources = nullptr,
                                   .type = kind.type,
                                   .probe = kind.make_probe ? kind.make_probe() : nullptr,
                                   .roster = kind.roster,
                                   .further_transports = kind.further_transports}) {
    bindings = kind.bindings;
    if (kind.roster != nullptr) entry.emplace(kind.roster, name);
    book.insert(peer);
    if (kind.enabled) enable();
  }
  void enable() {
    bindings.tx_queue = &sent;
    bindings.rx_queue = &received;
    engine.attach(book, bindings);
  }
  void send(std::uint64_t to = 0) {
    ++word;
    const ConstBytes slice = as_bytes(&word, sizeof word);
    EXPECT_EQ(engine.send({.slices = {&slice, 1}, .length = sizeof word, .to = to}), Status::ok);
  }

  /// Writes `word` to the beginning of the region that the peer has under key 1.
  void write() {
    const ConstBytes slice = as_bytes(&word, sizeof word);
    const protocol::RmaIov first{0, 1, slice.size()};
    protocol::WriteOp op;
    op.remote = {&first, 1};
    op.slices = {&slice, 1};
    op.length = slice.size();
    EXPECT_EQ(engine.write(op), Status::ok);
  }
  void receive() {
    const Bytes slice = as_bytes(&got, sizeof got);
    EXPECT_EQ(engine.receive({.slices = {&slice, 1}, .ignore = ~std::uint64_t{0}}), Status::ok);
  }

  /// What is seen of the only peer.
  engine::PeerStats peer() {
    const std::optional<engine::EndpointStats> seen = engine.stats();
    EXPECT_TRUE(seen && seen->peers.size() == 1);
    return seen && seen->peers.size() == 1 ? seen->peers[0] : engine::PeerStats{};
  }

  std::unique_ptr<link::Link> make_link(FakeNetwork& network, const SocketAddress& name,
                                        const NodeKind& kind) {
    std::unique_ptr<link::Link> plain = std::make_unique<FakeLink>(network, name, kind.frame_max);
    if (!kind.credentials) return plain;
    if (!kind.relays.empty()) {
      plain = std::make_unique<relay::RelayedLink>(
          std::move(plain), relay::RelayedSetup{*kind.credentials, name, 1, kind.relays},
          world_->environment());
    }
    return std::make_unique<seal::SealedLink>(std::move(plain), *kind.credentials, std::vector{name},
                                              world_->environment());
  }
  /// Engines of one test share nothing but the network's clock.
  struct World final {
    World(FakeClock& shared, std::uint64_t seed) : clock(shared), random(seed) {}
    Environment environment() { return {clock, random, log, counters}; }
    FakeClock& clock;
    FakeRandom random;
    FakeLog log;
    Counters counters;
  };
  World& world(FakeNetwork& network, std::uint64_t seed) {
    world_ = std::make_unique<World>(network.clock(), seed);
    return *world_;
  }
  Counters& counters() { return world_->counters; }
  const FakeLog& log() const { return world_->log; }
  /// How many lines of the log contain the words.
  std::size_t logged(std::string_view words) const {
    std::size_t count = 0;
    for (const std::string& line : log().lines) count += line.find(words) != std::string::npos ? 1 : 0;
    return count;
  }

  std::unique_ptr<World> world_;
  protocol::EndpointBindings bindings;
  transport::AddressTable book;
  protocol::CompletionQueue sent;
  protocol::CompletionQueue received;
  std::uint64_t word = 0;  ///< of the last message: they are numbered
  std::uint64_t got = 0;   ///< of the last message received
  engine::Engine engine;
  std::optional<engine::EndpointRoster::Entry> entry;
};

class EngineTest : public ::testing::Test {
 protected:
  /// Puts a frame on its way that no engine has sent.
  void inject(const SocketAddress& from, const SocketAddress& to, ConstBytes bytes, bool ethertype = false) {
    const link::Path path{to, {}, false, 0, ethertype};
    link::OutFrame frame;
    frame.path = &path;
    frame.add(bytes);
    network.carry(from, frame);
  }
  /// Injects a call for the node at `to`, and returns the opening in the answer, which does not arrive.
  wire::Opening answer_to(const ForgedFrame& call, Node& node, const SocketAddress& to = kA) {
    wire::FrameView answer;
    network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress& hearer) {
      wire::FrameView view;
      const bool names = hearer == call.opening->name &&
                         wire::admit(packet.bytes, view) == wire::Refusal::none && view.has_opening &&
                         view.session == call.opening->session;
      if (names) answer = view;
      return hearer == call.opening->name;
    };
    inject(call.opening->name, to, call.bytes());
    pass(node);
    network.drop = nullptr;
    EXPECT_TRUE(answer.has_opening);
    return answer.opening;
  }
  /// Moves time on, and all engines with it.
  template <typename... Nodes>
  void pass(Nodes&... nodes) {
    for (int i = 0; i < 50; ++i) {
      clock.advance(20us);
      (nodes.engine.poll(), ...);
    }
  }

  FakeClock clock;
  FakeNetwork network{clock, 1};
};

}  // namespace cluster::test
