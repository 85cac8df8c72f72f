// How often something may be done that unknown sources ask for: a bucket of `burst` tokens, one more each `interval`
// (a token bucket, RFC 2697). A crowd that asks at once is served; a flood is not.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"

namespace cluster::network {

class RateLimit {
 public:
  constexpr RateLimit(Duration interval, std::int64_t burst) : interval_(interval), burst_(burst) {}

  /// True if it may be done now; then it counts as done.
  bool admits(Time now) {
    const Time earliest = now - burst_ * interval_;
    next_ = std::max(next_, earliest);
    if (next_ > now) return false;
    next_ += interval_;
    return true;
  }
  /// What was not used is lost, but for the last so long.
  void forfeit(Time now, Duration kept) { next_ = std::max(next_, now - kept); }

 private:
  Duration interval_;
  std::int64_t burst_;
  Time next_{};  ///< when one more is allowed; in the past by what was not used
};

}  // namespace cluster::network
