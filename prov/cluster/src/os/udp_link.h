// The link that works everywhere: a UDP socket with segmentation offload for sending and receiving. It needs
// no privilege and works across routers. It is slower than the packet link, because its frames pass the IP
// stack on both sides.
#pragma once

#include <memory>
#include <vector>

#include "base/environment.h"
#include "link/link.h"
#include "link/multicast.h"
#include "os/interface_watch.h"
#include "os/udp_port.h"

namespace cluster::os {

/// Opens the link. `mtu`: the MTU of the interface that has the address of the port.
std::unique_ptr<link::Link> open_udp_link(std::shared_ptr<UdpPort> port, unsigned mtu,
                                          const Environment& environment);

/// Opens IP multicast for an endpoint. The endpoint joins groups on the interface with the index `interface`,
/// which must have the endpoint's address. The endpoint sends to groups through its UDP socket, whatever link
/// it has. Therefore the source of these frames is the endpoint's address.
std::unique_ptr<link::MulticastJoiner> open_group_joiner(std::shared_ptr<UdpPort> port, int interface,
                                                         const Environment& environment);

/// Gives the port another address of this host, if WatchedInterface::replacement() names one. That happens if
/// the host has lost the current address, or has the first address of the port again. Returns true if the
/// port has another address now.
bool readdress(UdpPort& port, WatchedInterface& interface, Log& log);
/// Returns `descriptors`, with the descriptor of the interface appended if the interface has one.
std::vector<int> with_descriptor(std::vector<int> descriptors, const WatchedInterface& interface);

/// Returns the size of the largest frame that fits into a packet of `mtu` bytes after the IP and UDP headers.
/// No result exceeds the largest frame of a udp link.
std::size_t frame_max_within(unsigned mtu, SocketAddress::Family family);
/// Returns the new frame_max() of a link after the MTU of its interface has changed. The result is at most
/// `opened`, the limit when the link was opened, because buffers have that size. Otherwise the result is at
/// least the smallest limit that an opening may announce.
std::size_t frame_max_renewed(std::size_t opened, unsigned mtu, SocketAddress::Family family);
/// Returns the MTU that frames of `frame_max` bytes need.
std::size_t mtu_for(std::size_t frame_max, SocketAddress::Family family);

}  // namespace cluster::os
