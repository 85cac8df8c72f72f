// Records the frames between two flows: a tap in the fake network between them, for tests that
// judge which frame leaves when rather than what arrives.
#pragma once

#include "support/flow_pair.h"

namespace cluster::test {

/// Runs until both sides know each other.
inline void open_session(FlowPair& pair) {
  pair.a.send_small(1);
  pair.b.send_small(1);
  ASSERT_TRUE(pair.run(100ms));
}

/// Remembers the frames that pass through the network.
struct FrameTap {
  struct Seen {
    std::uint8_t flags;
    std::size_t size;
    std::uint32_t sequence;
    SocketAddress to;
    bool data() const { return (flags & wire::frame_flag::kSequenced) != 0; }
    bool ordered() const { return (flags & wire::frame_flag::kOrdered) != 0; }
    bool ack_now() const { return (flags & wire::frame_flag::kAckNow) != 0; }
    bool acknowledges() const { return (flags & wire::frame_flag::kAcknowledges) != 0; }
  };

  explicit FrameTap(FakeNetwork& network) {
    network.drop = [this](const FakeNetwork::Packet& packet, const SocketAddress& to) {
      wire::FrameView view;
      EXPECT_EQ(wire::admit(packet.bytes, view), wire::Refusal::none);
      frames.push_back({view.flags, view.length, view.sequence.value, to});
      return drop_all;
    };
  }

  std::vector<Seen> frames;
  bool drop_all = false;
};

}  // namespace cluster::test
