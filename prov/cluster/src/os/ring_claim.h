// Who may have a receive ring on an interface. Every filtered packet socket is asked about every frame that
// comes in there, in the core where the kernel receives it: each ring makes all frames some 90 ns dearer,
// whomever they are for. The port of an ordinary socket is found by hash and costs the same however many
// there are. So an interface has a few rings, and whoever comes later uses the udp link.
//
// To have one is to hold one of a few names: abstract UNIX addresses, each of one holder in the network
// namespace. They need no privilege, no file and nobody to clean up: the kernel takes them back from the
// dead, and of any number of processes that start at once exactly as many have one as there are. (Its table
// of packet sockets would not do: they stand there in the order in which they were made and count from when
// they are bound, so of two that start together each can be the first; and other programs' look like ours.)
//
// A name is no right to anything. A stranger who takes them all makes endpoints of this node slower.
#pragma once

#include <cstddef>
#include <optional>

#include "base/address.h"
#include "os/descriptor.h"

namespace cluster::os {

/// One of the first `rings` names for the interface `index` and frames of the family, held as long as the
/// descriptor is open; nothing if all are taken. Empty if the kernel gives no names: then nobody is counted.
std::optional<Descriptor> claim_ring(int index, SocketAddress::Family family, std::size_t rings);

}  // namespace cluster::os
