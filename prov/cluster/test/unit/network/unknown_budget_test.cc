// How much memory all sources outside the address vector may hold here together.
#include <gtest/gtest.h>

#include <vector>

#include "support/forged_frame.h"
#include "support/node.h"

namespace cluster::engine {
namespace {

using test::FakeNetwork;
using test::ForgedFrame;
using test::kA;
using test::kB;
using test::kUnknownSource;
using test::Node;

constexpr std::uint64_t kEpoch = std::uint64_t{1} << 60;
constexpr std::size_t kBytesMax = 400'000;

EngineSettings tight() {
  EngineSettings settings = test::node_settings();
  settings.flows_max = 1024;
  settings.unknown_bytes_max = kBytesMax;
  return settings;
}

SocketAddress source(int number) {
  return kUnknownSource.with_port(static_cast<std::uint16_t>(2000 + number));
}

class UnknownBudgetTest : public test::EngineTest {
 protected:
  /// A source that answers from its own address: its next frames are of a session.
  ForgedFrame meet(Node& a, int number) {
    ForgedFrame frame =
        ForgedFrame::call(source(number), 0xF0000000u + static_cast<std::uint32_t>(number), kEpoch);
    frame.take_up(answer_to(frame, a));
    return frame;
  }
  /// It sends so many messages behind a frame that never comes.
  void leave_gap(Node& a, int number, ForgedFrame frame, std::uint32_t frames) {
    for (std::uint32_t i = 1; i <= frames; ++i) {
      ForgedFrame late = frame;
      late.header.sequence = frame.header.sequence + i;
      late.header.transmission = frame.header.transmission + i;
      late.carry({.kind = wire::SegmentKind::eager}, 1200);
      inject(source(number), kA, late.bytes());
      if (i % 16 == 0) pass(a);
    }
    pass(a);
  }
  std::size_t sessions(Node& a) {
    std::size_t count = 0;
    const EndpointStats stats = a.engine.stats().value();
    for (const PeerStats& peer : stats.peers) count += peer.flow.has_value() ? 1 : 0;
    return count;
  }
};

TEST_F(UnknownBudgetTest, WhatAllOfThemHoldIsBounded) {
  Node a(network, kA, kB, 1000, nullptr, tight());
  for (int i = 0; i < 20; ++i) leave_gap(a, i, meet(a, i), 48);
  std::size_t held = 0;
  const EndpointStats stats = a.engine.stats().value();
  for (const PeerStats& peer : stats.peers) held += peer.flow ? peer.flow->footprint : 0;
  EXPECT_LE(held, kBytesMax);
  EXPECT_GE(held, kBytesMax / 2) << "those that fit are not dropped";
  EXPECT_GT(a.counters().unknown_dropped, 0u);
  EXPECT_EQ(a.logged("senders outside the address vector occupy"), 1u);
}

TEST_F(UnknownBudgetTest, TheLongestIdleAreDroppedFirst) {
  Node a(network, kA, kB, 1000, nullptr, tight());
  leave_gap(a, 0, meet(a, 0), 48);
  const ForgedFrame active = meet(a, 1);
  clock.advance(2s);
  leave_gap(a, 1, active, 1);
  for (int i = 2; a.counters().unknown_dropped == 0; ++i) leave_gap(a, i, meet(a, i), 48);
  const EndpointStats stats = a.engine.stats().value();
  for (const PeerStats& peer : stats.peers) {
    if (peer.name != source(0) && peer.name != source(1)) continue;
    EXPECT_EQ(peer.flow.has_value(), peer.name == source(1));
  }
}

TEST_F(UnknownBudgetTest, OfThoseThatSpeakTheOneThatHoldsMostIsDropped) {
  Node a(network, kA, kB, 1000, nullptr, tight());
  for (int i = 0; i < 10; ++i) leave_gap(a, i, meet(a, i), 2);
  const ForgedFrame greedy = meet(a, 10);
  leave_gap(a, 10, greedy, 400);
  EXPECT_EQ(a.counters().unknown_dropped, 1u);
  EXPECT_EQ(sessions(a), 10u);
}

TEST_F(UnknownBudgetTest, PeersInTheAddressVectorAreNotCounted) {
  Node a(network, kA, source(0), 1000, nullptr, tight());
  leave_gap(a, 0, meet(a, 0), 400);
  EXPECT_EQ(a.counters().unknown_dropped, 0u);
  EXPECT_EQ(sessions(a), 1u);
}

TEST_F(UnknownBudgetTest, WhatASourceHeldIsFreeWhenItsSessionEnds) {
  Node a(network, kA, kB, 1000, nullptr, tight());
  for (int i = 0; i < 40; ++i) {
    Node unknown(network, source(i), kA, 1000);
    unknown.send();
    pass(a, unknown);
    EXPECT_EQ(a.counters().sessions_opened, static_cast<std::uint64_t>(i + 1));
  }
  EXPECT_EQ(a.counters().unknown_dropped, 0u);
}

}  // namespace
}  // namespace cluster::engine
