// Units of time. No component below engine/ reads a clock, with two exceptions: a link dates arrivals, and a
// flow dates each burst by a clock that engine/ lends it. Other objects receive `now` and return a deadline.
// So the same objects run under the real clock and under a simulated one.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

namespace cluster {

using namespace std::chrono_literals;

using Duration = std::chrono::nanoseconds;

/// The time line of an Environment. It has no now(): only a Clock hands out times.
struct Timeline {};
using Time = std::chrono::time_point<Timeline, Duration>;

/// A deadline that never comes.
inline constexpr Time kNever = Time::max();

}  // namespace cluster
