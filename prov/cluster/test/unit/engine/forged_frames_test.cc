// What a host cannot do to a session that is open, although it knows the protocol and even the session's number.
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

class ForgedFramesTest : public test::EngineTest {
 protected:
  /// Both sides have sent; `genuine` is the last frame of b's that was addressed to a's session.
  void converse() {
    network.drop = [this](const FakeNetwork::Packet& packet, const SocketAddress& to) {
      wire::FrameView view;
      if (wire::admit(packet.bytes, view) != wire::Refusal::none) return false;
      if (to == kA && view.session != 0 && view.sequenced() && !view.has_opening) genuine = packet.bytes;
      return false;
    };
    for (int i = 0; i < 3; ++i) {
      a.send();
      b.send();
      pass(a, b);
    }
    network.drop = nullptr;
    ASSERT_FALSE(genuine.empty());
  }

  std::vector<std::byte> genuine;
  Node a{network, kA, kB, 1000};
  Node b{network, kB, kA, 1000};
};

TEST_F(ForgedFramesTest, AFrameFromAnotherAddressDoesNotBelongToTheSession) {
  converse();
  ForgedFrame frame(genuine);
  frame.header.sequence = frame.header.sequence + 1;
  frame.header.flags = wire::frame_flag::kSequenced | wire::frame_flag::kOrdered;
  frame.segment = {.kind = wire::SegmentKind::eager};
  const std::uint64_t before = a.counters().unexpected;
  const std::uint64_t refused = a.counters().refused_stale;
  inject(kUnknownSource, kA, frame.bytes());
  pass(a);
  EXPECT_EQ(a.counters().unexpected, before);
  EXPECT_EQ(a.counters().refused_stale, refused + 1);
  inject(kB, kA, frame.bytes());
  pass(a);
  EXPECT_EQ(a.counters().unexpected, before + 1) << "that was all that was wrong with it";
  network.conditions.blackout = true;  // the forged sequence has left the two at odds
}

TEST_F(ForgedFramesTest, AFinWhoseEndCannotBeClosesNothing) {
  converse();
  ForgedFrame fin(genuine);
  fin.header.kind = static_cast<std::uint8_t>(wire::FrameKind::fin);
  fin.header.flags = 0;
  const std::uint32_t last = fin.header.sequence;
  const std::uint64_t refused = a.counters().refused_window;
  for (const std::uint32_t off : {1000u, 0x80000000u, 0xFFFFFFF0u}) {
    fin.header.sequence = last + off;
    inject(kB, kA, fin.bytes());
  }
  pass(a, b);
  EXPECT_EQ(a.counters().refused_window, refused + 3);
  const std::uint64_t received = b.counters().unexpected;
  a.send();
  pass(a, b);
  EXPECT_EQ(b.counters().unexpected, received + 1);
  EXPECT_EQ(a.counters().sessions_closed, 0u);
}

}  // namespace
}  // namespace cluster::engine
