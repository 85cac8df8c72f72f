// The limits under every transport, with nothing in the way: what the memory, the processors and the
// kernel's raw sockets give to the simplest code that can be written. Not a transport: no matching, no
// repair, no second message under way where one is enough.
#pragma once

#include <memory>

#include "run.h"
#include "wire_choice.h"

namespace perf {

/// `ring` and `ring_rate`: messages through 64-byte slots in memory that both processes map.
Work ring_work(const Item& item, Line& line);
/// `copy`: one core copies BYTES from one buffer into another.
Work copy_work(const Item& item);
/// `frame` and `frame_rate`: raw Ethernet frames of BYTES between two nodes, one way and WINDOW at a time.
Work frame_work(const Item& item, Line& line, const WireChoice& choice);
/// `super`: super-frames of BYTES segments between two nodes, at most WINDOW under way; bytes of payload per
/// second, copied to their place.
Work super_work(const Item& item, Line& line, const WireChoice& choice);

struct DatagramChoice {
  bool sleeps = false;  ///< in recv(), not asking again and again
  int busy_poll = 0;    ///< microseconds
};
/// `datagram`: one way of a datagram of BYTES through UDP sockets.
Work datagram_work(const Item& item, Line& line, const WireChoice& wire, const DatagramChoice& choice);

}  // namespace perf
