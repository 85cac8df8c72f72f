// The fast link: raw Ethernet frames, semi-user-level. Out: headers written here, handed to the
// driver past IP stack and queueing discipline, one system call per burst. In: a ring polled without
// any. The wire is the same as that of the udp link, and both talk to each other.
//
// What the ring does not see comes by the endpoint's UDP socket: frames from this host itself (over
// lo) and from other interfaces. The socket ignores what comes in on the ring's interface, and is
// asked rarely, since asking costs a system call: on every kQuietPolls-th poll, and on each poll for
// a while after it had something. Frames whose destination has no known hardware address leave that
// way too: the kernel routes and resolves the first contact, and the answer brings the address.
//
// Its shortcut is an EtherType of our own (os/packet_headers.h) with a ring of its own: one socket for both
// types would see frames before the administrator's ingress filters do. It is looked at first, for what takes
// the shortcut was sent before what came to the other meanwhile (multipath/path_state.h).
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
  /// Receive rings on one interface, over all processes of the node (os/ring_claim.h); nothing: no limit.
  std::optional<std::size_t> rings = 4;
  bool qdisc_bypass = true;  ///< not where the interface has a shaper
  bool offload = true;       ///< send super-frames
  /// Whether there is a shortcut; nothing: if the interface has a single receive queue, so that it is not one
  /// processor that takes all of it in.
  std::optional<bool> shortcut = std::nullopt;
};

/// Null with a `reason` that names cause and cure.
std::unique_ptr<link::Link> open_packet_link(std::shared_ptr<UdpPort> port, const Interface& interface,
                                             const PacketSettings& settings, const Environment& environment,
                                             std::string& reason);

}  // namespace cluster::os
