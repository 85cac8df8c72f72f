// Whole engines, one of which gets another address in mid-session: the session goes on. Nobody else can move
// it.
#include <gtest/gtest.h>

#include <map>

#include "support/railed_pair.h"
#include "wire/control.h"

namespace cluster::engine {
namespace {

using test::FakeLink;
using test::FakeNetwork;

SocketAddress place(int rail, int node) {
  const std::byte ip[] = {std::byte{10}, std::byte{0}, static_cast<std::byte>(rail),
                          static_cast<std::byte>(node)};
  return SocketAddress::v4(ip, 9228);
}

bool is_of_kind(const FakeNetwork::Packet& packet, wire::FrameKind kind) {
  return packet.bytes[offsetof(wire::FrameHeader, kind)] == static_cast<std::byte>(kind);
}

std::vector<multipath::Rail> rails_of(int node, int count) {
  std::vector<multipath::Rail> rails;
  for (int rail = 0; rail < count; ++rail)
    rails.push_back({place(rail, node), 24, "eth" + std::to_string(rail)});
  return rails;
}

struct MovedAddressTest : test::RailedPairTest {
  MovedAddressTest() {
    network.drop = [this](const FakeNetwork::Packet& packet, const SocketAddress& to) {
      bytes[to] += packet.bytes.size();
      ++frames[to];
      return packet.from.ip()[2] != to.ip()[2] || (drop && drop(packet, to));
    };
  }
  void begin(int rails = 1, bool keyed = false) {
    RailedPairTest::begin(rails_of(1, rails), rails_of(2, rails), keyed);
    exchange();
  }
  void exchange(Duration within = 100ms) { RailedPairTest::exchange(within); }
  void move_a(int to, int rail = 0) {
    a->links[static_cast<std::size_t>(rail)]->readdress(place(rail, to));
    bytes.clear();
    frames.clear();
  }
  /// Returns the challenge by which A claims a new address. B does not get it, and A has its first address
  /// again.
  std::vector<std::byte> overheard_claim() {
    std::vector<std::byte> heard;
    network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress& to) {
      if (to == place(0, 2) && is_of_kind(packet, wire::FrameKind::path_challenge)) heard = packet.bytes;
      return heard == packet.bytes;
    };
    move_a(7);
    a->engine.poll();
    network.drop = nullptr;
    a->links[0]->readdress(place(0, 1));
    return heard;
  }

  std::function<bool(const FakeNetwork::Packet&, const SocketAddress&)> drop;
  struct Less {
    bool operator()(const SocketAddress& x, const SocketAddress& y) const { return x.text() < y.text(); }
  };
  std::map<SocketAddress, std::size_t, Less> bytes;  ///< that were sent to an address
  std::map<SocketAddress, std::size_t, Less> frames;
};

TEST_F(MovedAddressTest, AnIdleSessionMovesAtOnce) {
  begin();
  move_a(7);
  run(10ms);
  exchange();
  EXPECT_EQ(frames[place(0, 1)], 0U) << "the peer knows the new address before it has anything to send";
}

TEST_F(MovedAddressTest, WhatWasOnItsWayArrives) {
  begin();
  move_a(7);
  exchange();
  move_a(8);
  exchange();
  move_a(1);
  exchange();
}

TEST_F(MovedAddressTest, LossesOnlyDelayIt) {
  begin();
  network.conditions.loss = 0.5;
  move_a(7);
  exchange(2s);
}

TEST_F(MovedAddressTest, ItIsAnnouncedUntilThePeerAnswers) {
  begin();
  drop = [](const FakeNetwork::Packet&, const SocketAddress&) { return true; };
  move_a(7);
  run(3s);
  EXPECT_LT(frames[place(0, 2)], 16U);
  drop = nullptr;
  run(1100ms);
  exchange();
  EXPECT_EQ(frames[place(0, 1)], 0U);
}

TEST_F(MovedAddressTest, OneOfSeveralRailsMoves) {
  begin(2);
  for (int i = 0; i < 20; ++i) exchange(10ms);
  move_a(7, 1);
  for (int i = 0; i < 20; ++i) exchange(10ms);
  drop = [](const FakeNetwork::Packet& packet, const SocketAddress&) {
    return packet.from.ip()[2] == std::byte{0};
  };
  exchange(2s);
  EXPECT_NE(frames[place(1, 7)], 0U);
}

TEST_F(MovedAddressTest, WithKeys) {
  begin(1, true);
  move_a(7);
  run(20ms);
  exchange();
  EXPECT_EQ(frames[place(0, 1)], 0U);
}

TEST_F(MovedAddressTest, ALateAnswerMovesNothingBack) {
  begin();
  std::vector<std::byte> late;
  drop = [&](const FakeNetwork::Packet& packet, const SocketAddress& to) {
    const bool response =
        late.empty() && to == place(0, 2) && is_of_kind(packet, wire::FrameKind::path_response);
    if (response) late = packet.bytes;
    return response;
  };
  move_a(7);
  run(1ms);
  drop = [](const FakeNetwork::Packet&, const SocketAddress&) {
    return false;
  };  // `late` ends before the nodes
  ASSERT_FALSE(late.empty());
  move_a(8);
  exchange();
  inject(place(0, 7), place(0, 2), late);
  exchange();
}

/// The address of the challenge must answer, and what it gets is no longer than what came from there.
TEST_F(MovedAddressTest, AClaimAloneMovesNothing) {
  begin();
  const std::vector<std::byte> heard = overheard_claim();
  ASSERT_FALSE(heard.empty());
  network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress& to) {
    bytes[to] += packet.bytes.size();
    return packet.from == place(0, 7);
  };
  bytes.clear();
  inject(place(0, 9), place(0, 2), heard);
  clock.advance(1ms);
  b->engine.poll();
  EXPECT_EQ(b->engine.stats()->peers.at(0).flow->paths.at(0).to, place(0, 1));
  run(50ms);
  EXPECT_GT(bytes[place(0, 9)], 0U);
  EXPECT_LE(bytes[place(0, 9)], heard.size());
  exchange();
  EXPECT_LE(bytes[place(0, 9)], heard.size());
}

/// Whoever does not know both sessions gets no answer that helps, and moves nothing.
TEST_F(MovedAddressTest, AStrangerMovesNothing) {
  begin();
  const std::vector<std::byte> heard = overheard_claim();
  network.drop = nullptr;
  run(50ms);
  wire::FrameView view;
  ASSERT_EQ(wire::admit(heard, view), wire::Refusal::none);
  for (const std::uint32_t wrong : {view.sequence.value + 1, 0U}) {
    const auto refused = b->world.counters.refused_stale;
    inject(place(0, 9), place(0, 2), wire::ControlFrame::path_challenge(wrong, 1, view.session).bytes());
    run(1ms);
    EXPECT_EQ(b->world.counters.refused_stale, refused + 1);
  }
  exchange();
}

}  // namespace
}  // namespace cluster::engine
