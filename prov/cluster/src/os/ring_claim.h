// Limits the receive rings on an interface. The kernel runs the filter of each packet socket on every frame
// that comes in there, on the core that receives it: each ring makes all frames some 90 ns more expensive,
// whatever their destination. The port of an ordinary socket is found by hash and costs the same however many
// there are. So an interface has a few rings, and further endpoints use the udp link.
//
// A ring is claimed by holding one of a few abstract UNIX socket names, each of which has one holder in the
// network namespace. They need no privilege, no file and no cleaning up: the kernel releases them when a
// process dies, and of any number of processes that start at once exactly as many hold one as there are. (The
// kernel's table of packet sockets would not do: its order is that of creation, while sockets count from when
// they are bound, so of two that start together each can be the first; and other programs' sockets look
// alike.)
//
// A claim grants no access. A process that takes all of them makes endpoints of this node slower.
#pragma once

#include <cstddef>
#include <optional>

#include "base/address.h"
#include "os/descriptor.h"

namespace cluster::os {

/// One of the first `rings` names for the interface `index` and frames of the family, held as long as the
/// descriptor is open; nothing if all are taken. Empty if the kernel gives no names: then there is no limit.
std::optional<Descriptor> claim_ring(int index, SocketAddress::Family family, std::size_t rings);

}  // namespace cluster::os
