// How often something is done that any host can ask for in the name of one peer: once, and then not for an interval of
// kLeast to kMost that is drawn anew each time. A host that asks at a regular pace could otherwise come first whenever it
// may be done again, and so keep the peer itself out without a flood; of intervals that it cannot know it misses most.
#pragma once

#include <cstdint>

#include "base/environment.h"
#include "base/units.h"

namespace cluster::engine {

class PeerLimit {
 public:
  static constexpr Duration kLeast = 300us;
  static constexpr Duration kMost = 1700us;

  bool due(Time now) const { return now >= next_; }
  /// It is done now.
  void note(Time now, Random& random) {
    constexpr auto kChoices = static_cast<std::uint64_t>((kMost - kLeast).count());
    next_ = now + kLeast + Duration(random.next() % kChoices);
  }

 private:
  Time next_{};
};

}  // namespace cluster::engine
