// The packet link sends and receives raw Ethernet frames without the IP stack. To send, it writes the headers
// itself and passes a burst to the driver with one system call. Unless the interface has a shaper or the
// settings forbid it, the burst bypasses the queueing discipline. To receive, the link polls a ring that it
// shares with the kernel. Polling needs no system call. On the IP path, the packets of this link have the
// same format as those of the udp link. Therefore an endpoint with a packet link can communicate with one
// that has a udp link.
//
// The rings of all endpoints of a user on the interface form a group (os/ring_group.h). A ring of a group
// cannot move to another interface. If the endpoint's address moves to another interface, the endpoint
// receives through its UDP socket until the address comes back.
//
// The endpoint's UDP socket receives the frames that do not enter the ring. These are frames from this host
// itself (over lo), frames that arrive on other interfaces, and frames that begin a session or a path
// (os/port_filter.h). The socket ignores all other frames that arrive on the ring's interface. To poll the
// socket, the link makes a system call. Therefore it polls the socket only once in kPollsPerSocketPoll calls
// of receive_burst(). After the socket has received a frame, the link polls it in each of the next
// kSocketPollsAfterTraffic calls. The link also sends through the socket to addresses of this host, and to a
// peer whose hardware address is not known. The kernel then finds the route and the hardware address. The
// engine learns the hardware address from the frames of the peer that arrive in the ring. A peer in another
// network shows the hardware address of a router, which is used only if the kernel's routes choose the same
// router (os/first_hop.h). The kernel refuses to send through the socket if its neighbour table is full. In
// this case the link sends the frame to the last known hardware address. If none is known, the frame goes to
// all hosts of the network, as far as UnlistedPeers allows that. Such a frame shows the sender's hardware
// address (os/address_trailer.h), and the destination answers to this address. If the kernel refuses a frame
// because the queue of the interface is full, the frame waits.
//
// The EtherType path (os/packet_headers.h) has its own ring. A single socket for both EtherTypes would have
// to accept every EtherType. The kernel gives each frame to such a socket before the administrator's ingress
// filters can drop the frame, so the filters would have no effect. A peer sends on the EtherType path only
// after all its frames on the IP path are acknowledged (multipath/path_manager.h). By then, those frames have
// left the IP ring. So if both rings contain frames of a peer, the peer has sent the frames in the IP ring
// later. Therefore the link polls the ring of the EtherType path first.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "base/environment.h"
#include "link/link.h"
#include "os/interfaces.h"
#include "os/neighbour_table.h"
#include "os/ring_table.h"
#include "os/udp_port.h"

namespace cluster::os {

struct PacketSettings {
  std::size_t ring_slots = 64;  ///< slots of 64 KiB each; the ring is rounded up to whole MiB
  /// Limit on the number of endpoints in a group of rings of this user and interface (os/ring_group.h).
  std::size_t rings = kRingsMax;
  unsigned ring_groups = 4;  ///< limit on the number of groups of this user and interface
  /// Whether to open a ring outside any group if no group has a place, or if the group does not work.
  bool ring_outside_group = false;
  bool qdisc_bypass = true;  ///< ignored if the interface has a shaper
  bool offload = true;       ///< send super-frames
  /// Whether to use the EtherType path. If unset, the link uses the path only on a physical or veth interface
  /// with a single receive queue. With several queues, one of them would receive all frames of this path.
  std::optional<bool> ethertype = std::nullopt;
  NeighbourTable::Overflows neighbour_overflows = os::neighbour_overflows;  ///< tests replace it
};

/// Opens the link. On failure, returns null and writes the cause and the remedy to `reason`. If `group` is
/// not null, sets `*group` to the table of the group of the link's IP ring, or to null if there is no group.
std::unique_ptr<link::Link> open_packet_link(std::shared_ptr<UdpPort> port, const Interface& interface,
                                             const PacketSettings& settings, const Environment& environment,
                                             std::string& reason,
                                             std::shared_ptr<const RingTable>* group = nullptr);

}  // namespace cluster::os
