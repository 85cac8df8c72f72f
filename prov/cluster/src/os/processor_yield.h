// What a loop does that shares its processor and has found nothing for a while. Yielding alone is not enough: some kernels (seen with 6.18)
// let threads that only yield keep a processor for seconds from all others, including the thread they wait for and the
// kernel's own. A sleep, however short, releases the processor.
#pragma once

#include <cstdint>

namespace cluster::os {

/// Yields. Each time that `times`, which the caller counts, is a multiple of `times_per_sleep`, it sleeps as sleep_shortest() does.
void yield_or_sleep(std::uint32_t times, std::uint32_t times_per_sleep);

/// Yields once and returns, in ticks, for how long others had the processor; some hundred nanoseconds are the call itself.
std::uint64_t timed_yield();

/// Sleeps for the shortest time that the kernel has, some 50 us.
void sleep_shortest();
/// The same where a thread that is cancelled may end (cancellation.h).
void sleep_shortest_cancellable();

}  // namespace cluster::os
