// The link that works everywhere: a UDP socket with segmentation offload both ways. It needs no privilege and
// crosses routers. Compared with the packet link, a frame also passes the IP stack on both sides.
#pragma once

#include <memory>

#include "base/environment.h"
#include "link/link.h"
#include "link/multicast.h"
#include "os/udp_port.h"

namespace cluster::os {

/// `mtu`: of the interface that the port's address belongs to.
std::unique_ptr<link::Link> open_udp_link(std::shared_ptr<UdpPort> port, unsigned mtu,
                                          const Environment& environment);

/// Multicast by IP. The kernel joins groups, on the interface that has the endpoint's name (`interface` is
/// its index). What the endpoint sends to a group leaves by its UDP socket, so the source is the endpoint's
/// name, whatever link it has.
std::unique_ptr<link::MulticastJoiner> open_group_joiner(std::shared_ptr<UdpPort> port, int interface,
                                                         const Environment& environment);

/// Returns the size of the largest frame behind IP and UDP headers in a packet of `mtu` bytes.
std::size_t frame_max_within(unsigned mtu, SocketAddress::Family family);
/// The same for a link whose interface has another MTU now. The link was opened with frames of at most
/// `opened` bytes, for which memory is laid out.
std::size_t frame_max_renewed(std::size_t opened, unsigned mtu, SocketAddress::Family family);
/// The inverse of frame_max_within().
std::size_t mtu_for(std::size_t frame_max, SocketAddress::Family family);

}  // namespace cluster::os
