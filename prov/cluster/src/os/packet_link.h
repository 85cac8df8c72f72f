// The packet link sends and receives raw Ethernet frames past the IP stack. Out: it writes the headers itself, and hands frames to the
// driver past IP stack and queueing discipline, one system call per burst. In: it polls a ring shared with the kernel, without
// system calls. The packets are those of the udp link, and both links talk to each other.
//
// What the ring does not receive comes by the endpoint's UDP socket: frames from this host itself (over lo) and from other
// interfaces. The socket ignores what comes in on the ring's interface. A poll of the socket costs a system call, so it is rare: on
// every kPollsPerSocketPoll-th poll, and on each poll for a while after the socket had something. Frames whose destination has
// no known hardware address leave by the socket, too: the kernel routes and resolves the first contact, and the answer brings the
// address.
//
// The EtherType path (os/packet_headers.h) has a ring of its own: one socket for both types would see frames before the
// administrator's ingress filters do. The link polls that ring first, because its frames were sent before those that arrived in the
// other ring meanwhile (multipath/path_manager.h).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "base/environment.h"
#include "link/link.h"
#include "os/interfaces.h"
#include "os/udp_port.h"

namespace cluster::os {

struct PacketSettings {
  std::size_t ring_slots = 64;  ///< of 64 KiB, rounded up to whole MiB
  /// Receive rings on one interface, over all processes of the node (os/packet_ring.h); unset: no limit.
  std::optional<std::size_t> rings = 4;
  bool qdisc_bypass = true;  ///< not where the interface has a shaper
  bool offload = true;       ///< send super-frames
  /// Whether to use the EtherType path. Unset: if the interface has a single receive queue; of several, only
  /// one would take all of these frames in.
  std::optional<bool> ethertype = std::nullopt;
};

/// Null with a `reason` that names cause and remedy.
std::unique_ptr<link::Link> open_packet_link(std::shared_ptr<UdpPort> port, const Interface& interface,
                                             const PacketSettings& settings, const Environment& environment,
                                             std::string& reason);

}  // namespace cluster::os
