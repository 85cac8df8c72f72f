#include "api/poll_backoff.h"

namespace cluster::api {

void PollBackoff::check(std::uint32_t reads, const std::function<void()>& turn) {
  const std::uint64_t now = platform_.clock().ticks();
  const std::uint64_t last_check = checked_at_.load(std::memory_order_relaxed);
  checked_at_.store(now, std::memory_order_relaxed);
  if (reads == kReadsBeforeCheck) return;
  const auto own_turns = [&] {  // with a margin: they differ
    turn();
    return 2 * kReadsPerCheck * (platform_.clock().ticks() - now);
  };
  if (now - last_check > kTicksUnbroken && now - last_check > kTicksUnbroken + own_turns()) {
    idle_reads_.store(kReadsAfterGap, std::memory_order_relaxed);
    return;
  }
  const std::uint32_t interval = yield_interval_.load(std::memory_order_relaxed);
  if (reads % interval != 0) return;
  yield_interval_.store(next_yield_interval(interval, platform_.yield_processor()),
                        std::memory_order_relaxed);
  checked_at_.store(platform_.clock().ticks(), std::memory_order_relaxed);
}

}  // namespace cluster::api
