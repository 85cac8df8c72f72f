// Units of time. Below engine/ nothing asks for the time; the engine lends flows a clock for the date of a
// burst, and a link that dates what has come: rooms are handed `now` and answer with a deadline, so the same
// objects run under the real clock and under a simulated one.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

namespace cluster {

using namespace std::chrono_literals;

using Duration = std::chrono::nanoseconds;

/// Names the time line of an Environment. It has no now(): only a Clock hands out times.
struct Timeline {};
using Time = std::chrono::time_point<Timeline, Duration>;

/// A deadline that never comes.
inline constexpr Time kNever = Time::max();

}  // namespace cluster
