// A member of the group as a receiver of this side's stream: how far it is, and what it was sent and asked. SenderStream changes
// it; its Member owns it.
#pragma once

#include <cstdint>

#include "base/address.h"
#include "base/units.h"
#include "carrier/carrier.h"

namespace cluster::group {

struct Listener {
  static constexpr std::uint64_t kNoPart = ~std::uint64_t{0};

  SocketAddress name;
  carrier::Carrier* carrier = nullptr;
  bool posted = false;     ///< something was posted to the carrier since the caller looked
  bool started = false;    ///< `start` is known: a message begins there
  bool start_due = false;  ///< it has not been told
  std::uint64_t start = 0;
  std::uint64_t arrived = 0;     ///< it has all frames before this
  std::uint64_t window_end = 0;  ///< it takes all frames before this
  std::uint64_t cursor = 0;      ///< by unicast: the next frame for it
  std::uint64_t missed = 0;      ///< frames of the train under way (pace.h)
  bool by_unicast = false;
  struct Part {
    std::uint64_t of = kNoPart;  ///< the frame of which it was sent a part...
    std::size_t end = 0;         ///< ...up to here
  };
  Part part{};
  unsigned unheard = 0;  ///< reports in a row without a frame by multicast
  Time asked_at{};       ///< the last question since its last report
  Duration silent{0};    ///< how long it has been asked without an answer
};

}  // namespace cluster::group
