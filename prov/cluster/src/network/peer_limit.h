// How often something is done that any host can ask for in the name of one peer: kSure times in kInterval, and further times
// with a probability that falls with the square of how often it has been done.
//
// A host that asks in the peer's name takes from what is there for the peer, which asks again only after some milliseconds, and
// later less and less often. So as much is there as comes through in a flood (link/thinning.h). Below that
// (flood_watch.h: 32 frames in the interval) each time is done with a probability of one half at least, whatever has come before,
// and since it is drawn each time none gains by asking at a certain pace.
//
// In a flood nearly all that is asked in a peer's name is forged, and each answer costs a system call here and an arrival there. Where
// the peer hardly asks by itself, one in kRarely is enough: it repeats what it asks.
#pragma once

#include <cstdint>

#include "base/environment.h"
#include "base/units.h"
#include "link/thinning.h"

namespace cluster::network {

class PeerLimit {
 public:
  static constexpr Duration kInterval = link::Thinning::kAsideInterval;
  static constexpr std::uint64_t kSure = link::Thinning::kAsideFrames;
  static constexpr std::uint64_t kRarely = 8;

  bool due(Time now, Random& random) const {
    if (now >= until_ || done_ < kSure) return true;
    return random.next() % (done_ * done_) < kSure * kSure;
  }
  /// The same in a flood, where the peer itself hardly asks.
  bool due_rarely(Time now, Random& random) const { return random.next() % kRarely == 0 && due(now, random); }
  /// It is done now.
  void note(Time now) {
    if (now >= until_) {
      until_ = now + kInterval;
      done_ = 0;
    }
    ++done_;
  }

 private:
  Time until_{};
  std::uint64_t done_ = 0;  ///< in this interval
};

}  // namespace cluster::network
