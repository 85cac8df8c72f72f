// How often frames that ask for a session are answered. Each answer is a system call and a frame towards a name that
// any host can have written there, so a flood of such frames must not draw as many answers (RFC 9000 21.3, 21.9).
//
// Names that are in the address vector, or have a session, are answered some thousand times a second each (peer_limit.h),
// however many ask in their name: a peer that gets no answer asks again soon. All other names share kPerSecond answers, and
// kBurst of them may come at once: a crowd of clients that start together. In a flood there is no such reserve.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "network/rate_limit.h"

namespace cluster::network {

class AnswerLimiter {
 public:
  static constexpr std::int64_t kPerSecond = 2'000;
  static constexpr std::int64_t kBurst = 8192;

  /// True if a name that is not known may be answered now; then it counts as answered.
  bool admits_unknown(Time now) { return unknown_.admits(now); }
  /// This is a flood, which is read once in `interval`.
  void forfeit(Time now, Duration interval) { unknown_.forfeit(now, interval); }

 private:
  RateLimit unknown_{Duration(std::chrono::seconds(1)) / kPerSecond, kBurst};
};

}  // namespace cluster::network
