// Ethernet frames by which hosts of one network learn which hardware address an IP address has: ARP (RFC 826, RFC 5227) and
// neighbour discovery (RFC 4861). Pure: bytes out. What arrives in answer is read by the kernel, whose table decides.
#pragma once

#include <cstddef>
#include <vector>

#include "base/address.h"
#include "os/packet_headers.h"

namespace cluster::os {

/// Tells all hosts of the network that the address of `origin` has its hardware address now.
std::vector<std::byte> neighbour_announcement(const Origin& origin);

/// Asks all hosts for the address of `peer`, which is of the same family.
std::vector<std::byte> neighbour_question(const Origin& origin, const SocketAddress& peer);

/// True if the two agree in that many bits.
bool same_network(const SocketAddress& one, const SocketAddress& other, unsigned prefix_bits);

}  // namespace cluster::os
