// Decides when a reader of an empty queue or counter yields the processor.
//
// With more ranks than processors, the peer that must answer may wait for the reader's processor. A reader
// that spins would keep that processor until the end of its time slice. So a reader that spins without a
// break yields.
//
// Invariant: no read sleeps. A program that works for some microseconds between its reads, or finds something
// now and then, never yields. A reader spins without a break while every kReadsPerCheck idle reads take at
// most kTicksUnbroken beyond their own turns of progress. With many peers these turns are long, so now and
// then an extra turn is timed. After a longer gap, and after an event, the count of reads up to the next
// yield starts again. The first kReadsBeforeCheck idle reads do not read the clock.
//
// The yield interval follows how long other threads kept the processor after the last yield:
//
//   none ran         twice as long, at most kYieldIntervalMax reads
//   a short time     kYieldIntervalMin: the other threads also wait, or do little and wait for this one
//   a long time      kYieldIntervalMax: the other threads compute, and each yield costs a whole time slice
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "api/platform.h"

namespace cluster::api {

class PollBackoff {
 public:
  explicit PollBackoff(Platform& platform) : platform_(platform) {}

  /// A read has found nothing new. `turn` takes a turn of progress, as reads do.
  template <typename Turn>
  void record_idle(const Turn& turn) {
    const std::uint32_t reads = idle_reads_.load(std::memory_order_relaxed) + 1;
    idle_reads_.store(reads, std::memory_order_relaxed);
    if (reads >= kReadsBeforeCheck && reads % kReadsPerCheck == 0) [[unlikely]]
      check(reads, turn);
  }
  /// A read has found something.
  void record_event() { idle_reads_.store(0, std::memory_order_relaxed); }

  static constexpr std::uint32_t kReadsPerCheck = 8;
  static constexpr std::uint32_t kReadsBeforeCheck = 24;
  static constexpr std::uint32_t kYieldIntervalMin = 32;
  static constexpr std::uint32_t kYieldIntervalMax = 1024;
  static constexpr std::uint64_t kTicksUnbroken = 1 << 15;  ///< ten to thirty microseconds

  /// Returns the next interval, if other threads had the processor for `away` ticks in the yield after
  /// `interval` reads.
  static constexpr std::uint32_t next_yield_interval(std::uint32_t interval, std::uint64_t away) {
    if (away < kTicksAlone) return interval < kYieldIntervalMax ? 2 * interval : kYieldIntervalMax;
    return away < kTicksLong ? kYieldIntervalMin : kYieldIntervalMax;
  }

 private:
  static constexpr std::uint64_t kTicksAlone = 1 << 12;  ///< ticks; the cost of the system call itself
  static constexpr std::uint64_t kTicksLong = 1 << 21;  ///< ticks; waiting ranks run for some hundred us each

  /// After a gap the count restarts here, so the next yield comes one interval later.
  static constexpr std::uint32_t kReadsAfterGap = kYieldIntervalMax;

  static constexpr std::uint32_t kChecksPerTiming = 16;

  std::uint64_t own_turns(std::uint64_t now, const std::function<void()>& turn);
  void check(std::uint32_t reads, const std::function<void()>& turn);

  Platform& platform_;
  /// All atomics are relaxed: with several readers the counts are imprecise, which only changes the
  /// intervals.
  std::atomic<std::uint32_t> idle_reads_{0};
  std::atomic<std::uint32_t> yield_interval_{kYieldIntervalMax};
  std::atomic<std::uint64_t> checked_at_{0};  ///< ticks at the last check
  std::atomic<std::uint64_t> own_turns_{0};   ///< ticks, the smaller of the last two timings
  std::atomic<std::uint64_t> timed_{0};       ///< the last timing
  std::atomic<std::uint32_t> slow_checks_{0};
};

}  // namespace cluster::api
