// An engine that knows one peer, under handle 0, on a fake network: for tests of whole engines that need no
// more than that.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "engine/engine.h"
#include "shm/host.h"
#include "support/fake_network.h"

namespace cluster::test {

inline SocketAddress node_name(int last) {
  const std::byte ip[] = {std::byte{10}, std::byte{0}, std::byte{0}, static_cast<std::byte>(last)};
  return SocketAddress::v4(ip, 9228);
}

struct EngineNode {
  EngineNode(FakeNetwork& network, const SocketAddress& name, const SocketAddress& peer,
             engine::Service service = engine::Service::reliable, std::size_t frame_max = 1472)
      : clock(network.clock()),
        random(peer.port()),
        engine(engine::Parts{.environment = {clock, random, log, counters},
                             .settings = {.linger = 0s},
                             .name = name,
                             .epoch = 1000,
                             .link = std::make_unique<FakeLink>(network, name, frame_max),
                             .host = nullptr,
                             .keeper = nullptr,
                             .service = service}) {
    book.insert(peer);
    engine.attach(book, {.sends = &sent, .receives = &received});
  }
  void send() {
    const ConstBytes slice = as_bytes(&word, sizeof word);
    EXPECT_EQ(engine.send({.slices = {&slice, 1}, .length = sizeof word}), Fault::none);
  }
  /// What is seen of the only peer.
  engine::PeerInsight peer() {
    const std::optional<engine::Insight> seen = engine.insight();
    EXPECT_TRUE(seen && seen->peers.size() == 1);
    return seen && seen->peers.size() == 1 ? seen->peers[0] : engine::PeerInsight{};
  }

  FakeClock& clock;
  FakeRandom random;
  FakeLog log;
  Counters counters;
  engine::AddressBook book;
  protocol::CompletionQueue sent;
  protocol::CompletionQueue received;
  std::uint64_t word = 0x1234;
  engine::Engine engine;
};

}  // namespace cluster::test
