// Two whole engines with several rails each. Which rails reach each other is up to the test's network.drop.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "multipath/link_bundle.h"
#include "seal/sealed_link.h"
#include "support/completions.h"
#include "support/fake_network.h"
#include "support/seal_keys.h"

namespace cluster::test {

/// An engine whose name is the address of its first rail. It seals if `keyed`.
struct RailedNode {
  RailedNode(FakeNetwork& network, std::uint64_t seed, std::vector<multipath::Rail> rails, bool keyed)
      : world{.clock = network.clock(), .random = FakeRandom(seed)},
        engine(parts(network, std::move(rails), keyed)) {
    engine.attach(book, {.tx_queue = &sent, .rx_queue = &received});
  }
  engine::EngineParts parts(FakeNetwork& network, std::vector<multipath::Rail> rails, bool keyed) {
    const Environment environment{world.clock, world.random, world.log, world.counters};
    std::vector<std::unique_ptr<link::Link>> made;
    std::vector<SocketAddress> addresses;
    for (const multipath::Rail& rail : rails) {
      auto one = std::make_unique<FakeLink>(network, rail.address);
      links.push_back(one.get());
      made.push_back(std::move(one));
      if (!rail.address.verbs()) addresses.push_back(rail.address);
    }
    std::unique_ptr<link::Link> link = std::make_unique<multipath::LinkBundle>(std::move(made));
    if (keyed)
      link = std::make_unique<seal::SealedLink>(std::move(link), credentials({"of both"}), addresses,
                                                environment);
    transport::EngineSettings settings;
    settings.linger = 0s;
    return {.environment = environment,
            .settings = settings,
            .name = rails.front().address,
            .epoch = 1000,
            .link = std::move(link),
            .local_listener = nullptr,
            .resources = nullptr,
            .rails = std::move(rails)};
  }
  void send(transport::AddressTable::Handle to) {
    const ConstBytes slice = message;
    EXPECT_EQ(engine.send({.slices = {&slice, 1}, .length = slice.size(), .to = to}), Status::ok);
  }

  struct World {
    FakeClock& clock;
    FakeRandom random;
    FakeLog log{};
    Counters counters{};
  } world;
  std::vector<FakeLink*> links;  ///< one for each rail
  transport::AddressTable book;
  protocol::CompletionQueue sent;
  protocol::CompletionQueue received;
  std::vector<std::byte> message = std::vector<std::byte>(8);
  engine::Engine engine;
};

/// The messages stay in the receivers' stores, which count them.
struct RailedPairTest : testing::Test {
  /// The engines send farewells, which network.drop of the test still sees.
  void TearDown() override {
    a.reset();
    b.reset();
  }
  void begin(std::vector<multipath::Rail> rails_of_a, std::vector<multipath::Rail> rails_of_b, bool keyed) {
    const SocketAddress name_of_a = rails_of_a.front().address, name_of_b = rails_of_b.front().address;
    a.emplace(network, 1, std::move(rails_of_a), keyed);
    b.emplace(network, 2, std::move(rails_of_b), keyed);
    to_a = b->book.insert(name_of_a);
    to_b = a->book.insert(name_of_b);
    exchanged = 0;
  }
  void run(Duration time) {
    for (const Time end = clock.now() + time; clock.now() < end; clock.advance(20us)) {
      a->engine.poll();
      b->engine.poll();
    }
  }
  /// Both sides send a message and get it within this time.
  void exchange(Duration within) {
    ++exchanged;
    a->send(to_b);
    b->send(to_a);
    run(within);
    EXPECT_EQ(a->engine.unexpected_messages(), exchanged);
    EXPECT_EQ(b->engine.unexpected_messages(), exchanged);
    EXPECT_EQ(take_count(a->sent), 1U);
    EXPECT_EQ(take_count(b->sent), 1U);
  }
  /// Puts a frame on its way that neither engine has sent.
  void inject(const SocketAddress& from, const SocketAddress& to, ConstBytes frame) {
    FakeLink stranger(network, from);
    link::send_frame(stranger, frame, {to, {}, false});
  }

  FakeClock clock;
  FakeNetwork network{clock, 1};
  std::size_t exchanged = 0;
  std::optional<RailedNode> a;
  std::optional<RailedNode> b;
  transport::AddressTable::Handle to_a{};
  transport::AddressTable::Handle to_b{};
};

}  // namespace cluster::test
