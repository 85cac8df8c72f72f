#include "api/poll_backoff.h"

#include <algorithm>

namespace cluster::api {

void PollBackoff::check(std::uint32_t reads) {
  const std::uint64_t now = platform_.clock().ticks();
  const std::uint64_t last_check = checked_at_.load(std::memory_order_relaxed);
  checked_at_.store(now, std::memory_order_relaxed);
  if (reads == kReadsBeforeCheck) {
    spun_.store(0, std::memory_order_relaxed);
    return;
  }
  const std::uint64_t passed = now - last_check;
  const std::uint64_t spun = spun_.load(std::memory_order_relaxed);
  if (passed > kTicksUnbroken) {
    spun_.store(spun - std::min(spun, passed), std::memory_order_relaxed);
    idle_reads_.store(kReadsAfterGap, std::memory_order_relaxed);
    return;
  }
  spun_.store(spun + passed, std::memory_order_relaxed);
  if (spun + passed >= kTicksBeforeSleep) return spun_long();
  const std::uint32_t interval = yield_interval_.load(std::memory_order_relaxed);
  if (reads % interval != 0) return;
  yield_interval_.store(next_yield_interval(interval, platform_.yield_processor()),
                        std::memory_order_relaxed);
  checked_at_.store(platform_.clock().ticks(), std::memory_order_relaxed);
}

/// Where a yield has shown others, or the kernel counts them, they may be starving.
void PollBackoff::spun_long() {
  const bool shared = yield_interval_.load(std::memory_order_relaxed) == kYieldIntervalMin;
  if (shared || platform_.processors_crowded()) platform_.sleep_shortest();
  spun_.store(0, std::memory_order_relaxed);
  checked_at_.store(platform_.clock().ticks(), std::memory_order_relaxed);
}

}  // namespace cluster::api
