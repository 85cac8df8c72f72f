// Types for times and durations. Most objects read no clock: they get the time as the argument `now`, and
// return the time at which they must be called again. The engine, its transports and seal/ read the Clock of
// their Environment. A flow may read this clock while it sends bursts. Therefore the same objects run with
// the real clock and with a simulated clock.
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
