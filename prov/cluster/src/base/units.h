// Types for times and durations. No component below engine/ reads a clock, with two exceptions. A link adds a
// timestamp to each arrival. A flow adds a timestamp to each burst, by a clock that engine/ lends to it. All
// other objects get the time as the argument `now`, and return the time at which they must be called again.
// So the same objects run with the real clock and with a simulated one.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

namespace cluster {

using namespace std::chrono_literals;

using Duration = std::chrono::nanoseconds;

/// The clock type of Time. It has no now(), because only a Clock object tells the time.
struct Timeline {};
using Time = std::chrono::time_point<Timeline, Duration>;

/// A time that is never reached.
inline constexpr Time kNever = Time::max();

}  // namespace cluster
