// What a simulated host's kernel does with a flood (link/link.h, os/port_filter.h): it puts frames aside, gives keep-alives to
// the responder and drops the rest, as the engine has asked for. Frames set aside are read at their time.
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
  /// Leaves the packet with the caller if there is no space for it.
  void put_aside(std::unique_ptr<Packet>& packet);
  /// Null if there is none to be looked at now.
  std::unique_ptr<Packet> take_aside(Time now);

 private:
  static constexpr int kAnswersPerInterval = 64;  ///< as os/keep_alive_responder.cc
  static constexpr Duration kAnswersInterval = 5ms;

  bool one_in(unsigned shift);
  Place to_responder(Time now);

  link::Thinning thinning_;
  RingQueue<std::unique_ptr<Packet>> aside_;
  Time next_look_{};
  std::size_t left_ = 0;   ///< of this look
  std::uint32_t die_ = 1;  ///< which of many alike get through
  Time answers_until_{};
  int answers_ = 0;  ///< in this interval
};

}  // namespace cluster::sim
