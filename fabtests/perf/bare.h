// The limits under every transport, with nothing in the way: what the memory, the processors and the
// kernel's raw sockets give to the simplest code that can be written. Not a transport: no matching, no
// repair, no second message under way where one is enough.
#pragma once

#include <memory>

#include "measurement.h"
#include "wire_choice.h"

namespace perf {

/// One message there and one back, by ends that send() and receive(), each after a pause of so many seconds.
template <typename Ends>
Benchmark ping_pong(const std::shared_ptr<Ends>& ends, const Item& item, double pause = 0) {
  Benchmark work;
  work.figure = Figure::one_way_us;
  work.messages = 2;
  work.bytes = 2 * static_cast<double>(item.bytes);
  work.pauses = 2 * pause;
  work.lead = [ends, pause](std::uint64_t) {
    if (pause > 0) compute_for(pause);
    ends->send();
    ends->receive();
  };
  work.follow = [ends, pause](std::uint64_t) {
    ends->receive();
    if (pause > 0) compute_for(pause);
    ends->send();
  };
  return work;
}

/// `ring` and `ring_rate`: messages through 64-byte slots in memory that both processes map.
Benchmark ring_measure(const Item& item, ControlConnection& line);
/// `futex`: one way of a word in memory that both processes map, whose reader has been asleep for a while.
Benchmark futex_measure(const Item& item, ControlConnection& line);
/// `copy`: one core copies BYTES from one buffer into another.
Benchmark copy_measure(const Item& item);
/// `frame` and `frame_rate`: raw Ethernet frames of BYTES between two nodes, one way and WINDOW at a time.
Benchmark frame_measure(const Item& item, ControlConnection& line, const WireChoice& choice);
/// `super`: super-frames of BYTES segments between two nodes, at most WINDOW under way; bytes of payload per
/// second, copied to their place.
Benchmark super_frame_measure(const Item& item, ControlConnection& line, const WireChoice& choice);

struct DatagramChoice {
  bool sleeps = false;  ///< in recv(), not asking again and again
  int busy_poll = 0;    ///< microseconds
};
/// `datagram`, and `asleep`, whose reader has been asleep in recv() for a while: one way of a datagram of BYTES through UDP
/// sockets.
Benchmark datagram_measure(const Item& item, ControlConnection& line, const WireChoice& wire,
                           const DatagramChoice& choice, double pause = 0);
/// `stream`: WINDOW messages of BYTES between two nodes through UDP sockets that send and receive up to 64 KB
/// a call, then an answer; bytes per second, copied to their place.
Benchmark stream_measure(const Item& item, ControlConnection& line, const WireChoice& wire);

}  // namespace perf
