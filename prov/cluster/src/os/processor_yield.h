// What a loop does that has found nothing for a while and shares its processor. Yielding alone is not enough:
// some kernels (seen with 6.18) let threads that do nothing but yield keep a processor for seconds from all
// others, including the thread they wait for and the kernel's own. A sleep, however short, does release it.
#pragma once

#include <cstdint>

namespace cluster::os {

/// Yields; each time that `times`, a count of the caller's, is a multiple of `times_per_sleep`, sleeps for
/// the shortest time there is (some 50 us) instead.
void yield_or_sleep(std::uint32_t times, std::uint32_t times_per_sleep);

/// Yields once, and returns for how long others had the processor, in ticks; some hundred nanoseconds are the
/// call itself.
std::uint64_t timed_yield();

/// Sleeps for the shortest time that the kernel has, some 50 us.
void sleep_shortest();
/// The same where a thread that is cancelled may end (cancellation.h).
void sleep_shortest_cancellable();

}  // namespace cluster::os
