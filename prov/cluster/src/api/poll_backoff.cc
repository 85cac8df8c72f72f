#include "api/poll_backoff.h"

#include <algorithm>

namespace cluster::api {

/// Returns how many ticks the turns of progress in kReadsPerCheck reads take, doubled as a margin.
std::uint64_t PollBackoff::own_turns(std::uint64_t now, const std::function<void()>& turn) {
  const std::uint32_t checks = slow_checks_.load(std::memory_order_relaxed);
  slow_checks_.store(checks + 1, std::memory_order_relaxed);
  if (checks % kChecksPerTiming == 0) {
    turn();
    const std::uint64_t took = 2 * kReadsPerCheck * (platform_.clock().ticks() - now);
    // The smaller of the last two timings counts, because a timing is useless if the thread lost the
    // processor during it.
    own_turns_.store(std::min(took, timed_.exchange(took, std::memory_order_relaxed)),
                     std::memory_order_relaxed);
  }
  return own_turns_.load(std::memory_order_relaxed);
}

/// Yields the processor. Returns for how many ticks each of the other threads had it, on average.
std::uint64_t PollBackoff::yield() {
  const std::uint64_t away = platform_.yield_processor();
  if (away < kTicksLong) return away;
  return away / std::max(1u, platform_.threads_per_processor() - 1);
}

void PollBackoff::check(std::uint32_t reads, const std::function<void()>& turn) {
  const std::uint64_t now = platform_.clock().ticks();
  const std::uint64_t last_check = checked_at_.load(std::memory_order_relaxed);
  checked_at_.store(now, std::memory_order_relaxed);
  if (reads == kReadsBeforeCheck) {
    spins_since_.store(now, std::memory_order_relaxed);
    return;
  }
  if (now - last_check > kTicksUnbroken && now - last_check > kTicksUnbroken + own_turns(now, turn)) {
    idle_reads_.store(kReadsAfterGap, std::memory_order_relaxed);
    spins_since_.store(now, std::memory_order_relaxed);
    return;
  }
  const std::uint32_t interval = yield_interval_.load(std::memory_order_relaxed);
  const bool long_spin = now - spins_since_.load(std::memory_order_relaxed) > kTicksSpinning;
  if (reads % interval != 0 && !long_spin) return;
  yield_interval_.store(next_yield_interval(interval, yield()), std::memory_order_relaxed);
  const std::uint64_t after = platform_.clock().ticks();
  checked_at_.store(after, std::memory_order_relaxed);
  spins_since_.store(after, std::memory_order_relaxed);
}

}  // namespace cluster::api
