// When a reader of an empty queue or counter gives the processor away.
//
// With more ranks than processors the peer that has to answer may wait for the reader's processor; a reader
// that spins would use up its time slice. So unbroken spinning yields.
//
// Invariant: a look is not a wait. No read sleeps, and a program that works between its reads for some
// microseconds, or finds something now and then, is not even made to yield. Spinning is unbroken as long as every
// kReadsPerCheck idle reads take at most kTicksUnbroken beside their own turns of progress, which are long where there are many
// peers (one more is timed now and then); after a longer gap, and after an event, the reads to
// the next yield are counted afresh. The first kReadsBeforeCheck idle reads do not read the clock.
//
// The yield interval follows how long other threads kept the processor after the last yield:
//
//   none ran         twice as long, at most kYieldIntervalMax reads
//   a short time     kYieldIntervalMin: they wait as well, or do little and wait for this one
//   a long time      kYieldIntervalMax: they compute, and each yield costs a whole time slice
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "api/platform.h"

namespace cluster::api {

class PollBackoff {
 public:
  explicit PollBackoff(Platform& platform) : platform_(platform) {}

  /// A read found nothing new. `turn` takes a turn of progress, as the reads do.
  template <typename Turn>
  void record_idle(const Turn& turn) {
    const std::uint32_t reads = idle_reads_.load(std::memory_order_relaxed) + 1;
    idle_reads_.store(reads, std::memory_order_relaxed);
    if (reads >= kReadsBeforeCheck && reads % kReadsPerCheck == 0) [[unlikely]]
      check(reads, turn);
  }
  /// A read found something.
  void record_event() { idle_reads_.store(0, std::memory_order_relaxed); }

  static constexpr std::uint32_t kReadsPerCheck = 8;
  static constexpr std::uint32_t kReadsBeforeCheck = 24;
  static constexpr std::uint32_t kYieldIntervalMin = 32;
  static constexpr std::uint32_t kYieldIntervalMax = 1024;
  static constexpr std::uint64_t kTicksUnbroken = 1 << 15;  ///< ten to thirty microseconds

  /// The interval that follows `interval` reads, after a yield in which others had the processor for `away`
  /// ticks.
  static constexpr std::uint32_t next_yield_interval(std::uint32_t interval, std::uint64_t away) {
    if (away < kTicksAlone) return interval < kYieldIntervalMax ? 2 * interval : kYieldIntervalMax;
    return away < kTicksLong ? kYieldIntervalMin : kYieldIntervalMax;
  }

 private:
  static constexpr std::uint64_t kTicksAlone = 1 << 12;  ///< the cost of the system call itself
  static constexpr std::uint64_t kTicksLong = 1 << 21;   ///< waiting ranks take turns of some hundred us

  /// Where counting goes on after a gap: a yield is due after so many reads and another interval.
  static constexpr std::uint32_t kReadsAfterGap = kYieldIntervalMax;

  static constexpr std::uint32_t kChecksPerTiming = 16;

  std::uint64_t own_turns(std::uint64_t now, const std::function<void()>& turn);
  void check(std::uint32_t reads, const std::function<void()>& turn);

  Platform& platform_;
  /// All relaxed: with several readers the counts are imprecise, which changes the intervals only.
  std::atomic<std::uint32_t> idle_reads_{0};
  std::atomic<std::uint32_t> yield_interval_{kYieldIntervalMax};
  std::atomic<std::uint64_t> checked_at_{0};  ///< ticks at the last check
  std::atomic<std::uint64_t> own_turns_{0};   ///< ticks, the smaller of the last two timings
  std::atomic<std::uint64_t> timed_{0};       ///< the last timing
  std::atomic<std::uint32_t> slow_checks_{0};
};

}  // namespace cluster::api
