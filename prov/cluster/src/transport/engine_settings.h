// Limits and timeouts of an engine. provider/options.cc sets the fields that have an option FI_CLUSTER_*. The
// other fields keep the values below, except in tests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/units.h"
#include "protocol/context.h"
#include "reliability/ack_delay.h"

namespace cluster::transport {

inline constexpr std::uint16_t kFlowWindow = 512;

struct EngineSettings : protocol::MessengerSettings {
  bool shm = true;  ///< use shared memory for peers on this node
  /// A longer message to a peer on this node is announced, and the peer pulls it.
  std::size_t shm_eager_max = 32 * 1024;
  /// A longer message to another node is announced, and the peer pulls it.
  std::size_t net_eager_max = 64 * 1024;
  std::size_t shm_ring_bytes = 1024 * 1024;  ///< the payload capacity of one shared-memory ring
  /// True to copy large messages directly between local processes, if the kernel permits it.
  bool single_copy = true;
  /// If this many flows or this many rings are open, only known peers may open another (PeerTable::known).
  std::size_t flows_max = 32768;
  std::size_t unknown_bytes_max =
      256 << 20;  ///< the limit on memory for all unknown sources together, without their unexpected messages
  std::uint16_t flow_window = kFlowWindow;      ///< the largest number of frames in flight in one flow
  Duration ack_delay = reliability::kAckDelay;  ///< the longest time that an acknowledgement is delayed
  Duration peer_timeout = 20s;  ///< a peer that is silent for this time, while others are heard, is lost
  Duration outage = 120s;       ///< the longest time for which silence does not count while no peer is heard
  /// An idle session sends a keep-alive after this time; 0 means never. Stateful firewalls forget a UDP flow
  /// after 30 s or more without a packet.
  Duration refresh_interval = 25s;
  Duration stuck_timeout{
      0};  ///< a peer whose process exists but does not answer is given up after this time; 0 means never
  bool end_abandoned = true;  ///< receives from any sender end if a peer was lost and no peer is reached
  /// The port of the multicast groups of teams. It must be the same on all members.
  std::uint16_t team_port = 9228;
  /// Short messages inside a node may take the fast lane (tests switch it off to compare).
  bool fast_lane = true;
  bool frame_lane = true;  ///< short messages between nodes may take the frame lane
  /// True if an RDMA device reads the long messages of peers (verbs/). The opening of each session tells the
  /// peer.
  bool device_reads = false;
  /// Returns how long this endpoint keeps a half-open session, and an unknown source whose session is over.
  Duration forget_after() const { return std::min<Duration>(peer_timeout, 5s); }
  /// When an endpoint closes, it waits at most this long until its messages have left and are acknowledged.
  Duration linger = 2s;
};

}  // namespace cluster::transport
