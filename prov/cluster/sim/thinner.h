// What the kernel of a simulated host does with frames during a flood (link/link.h, os/port_filter.h). As
// the engine has asked, it puts frames aside, and gives keep-alives to the responder. It drops keep-alives
// that exceed the responder's rate. At fixed intervals the engine reads the frames that were put aside.
#pragma once

#include <cstddef>
#include <memory>

#include "base/ring_queue.h"
#include "link/link.h"
#include "sim/packet.h"

namespace cluster::sim {

class Thinner {
 public:
  enum class Place : std::uint8_t { engine, responder, aside, nowhere };

  void set(const link::Thinning& thinning) { thinning_ = thinning; }
  Place place_of(Time now, const Packet& packet);
  /// If there is no space for the packet, the caller keeps it.
  void put_aside(std::unique_ptr<Packet>& packet);
  /// Returns a packet that was put aside, or null if there is none or it is too early.
  std::unique_ptr<Packet> take_aside(Time now);

 private:
  static constexpr int kAnswersPerInterval = 64;  ///< as in os/keep_alive_responder.cc
  static constexpr Duration kAnswersInterval = 5ms;

  bool one_in(unsigned shift);
  Place to_responder(Time now);

  link::Thinning thinning_;
  RingQueue<std::unique_ptr<Packet>> aside_;
  Time next_look_{};
  std::size_t left_ = 0;   ///< how many frames may still be read in this interval
  std::uint32_t die_ = 1;  ///< decides which of many similar frames get through
  Time answers_until_{};
  int answers_ = 0;  ///< in this interval
};

}  // namespace cluster::sim
