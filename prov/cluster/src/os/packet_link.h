// The packet link sends and receives raw Ethernet frames past the IP stack. To send, it writes the headers
// itself, and passes frames to the driver past the IP stack and the queueing discipline: one system call per
// burst. To receive, it polls a ring that it shares with the kernel, without system calls. Its packets are
// those of the udp link, so both links can talk to each other.
//
// The endpoint's UDP socket receives the frames that the ring does not: those from this host itself (over lo)
// and from other interfaces. The socket ignores what comes in on the ring's interface. Polling the socket
// costs a system call. So the link does it only on every kPollsPerSocketPoll-th poll, and on each poll for a
// while after the socket had something. Frames whose destination has no known hardware address leave by the
// socket, too. The kernel routes and resolves this first contact, and the answer brings the address.
//
// The EtherType path (os/packet_headers.h) has its own ring, because one socket for both types would see
// frames before the administrator's ingress filters do. The link polls that ring first, because its frames
// were sent before those that arrive in the other ring meanwhile (multipath/path_manager.h).
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
  /// Most receive rings on one interface, for all processes of the node (os/packet_ring.h); unset: no limit.
  std::optional<std::size_t> rings = 4;
  bool qdisc_bypass = true;  ///< off if the interface has a shaper
  bool offload = true;       ///< send super-frames
  /// Whether to use the EtherType path. Unset: only if the interface has a single receive queue, because one
  /// of several queues would receive all of these frames.
  std::optional<bool> ethertype = std::nullopt;
};

/// Opens the link. Returns null on failure; `reason` names cause and remedy.
std::unique_ptr<link::Link> open_packet_link(std::shared_ptr<UdpPort> port, const Interface& interface,
                                             const PacketSettings& settings, const Environment& environment,
                                             std::string& reason);

}  // namespace cluster::os
