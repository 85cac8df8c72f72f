// Decides when a thread that reads an empty queue, or an unchanged counter, yields the processor.
//
// If there are more ranks than processors, the peer that must answer may be waiting for the processor on
// which the reader spins. Without a yield, the reader would keep that processor until the end of its time
// slice. So a reader that spins without a break yields from time to time.
//
// Invariant: no read sleeps. A program that computes for some microseconds between its reads never yields.
// Neither does a program whose reads find something before the next yield is due. A reader spins without a
// break if kReadsPerCheck idle reads take at most kTicksUnbroken more than their turns of progress. With many
// peers these turns take long. To learn how long, the reader times an extra turn now and then. After a longer
// gap, and after a read that finds something, the count of reads before the next yield starts again. Before
// the kReadsBeforeCheck-th idle read, the reader does not look at the clock.
//
// The number of reads between two yields (the yield interval) depends on how long each of the other threads
// kept the processor after the last yield, on average:
//
//   none ran         twice the last interval, at most kYieldIntervalMax reads
//   a short time     kYieldIntervalMin: the other threads also wait, or do little and wait for this thread
//   a long time      kYieldIntervalMax: the other threads compute, and each yield costs a whole time slice
//
// If fifty readers wait on one processor, all of them together need a long time, although each yields soon.
// Therefore, after a long time, the reader asks the platform how many threads share the processor. In
// addition, a reader yields after kTicksSpinning, whatever the interval. Otherwise readers with slow turns of
// progress would take each other for threads that compute.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "api/platform.h"

namespace cluster::api {

class PollBackoff {
 public:
  explicit PollBackoff(Platform& platform) : platform_(platform) {}

  /// Called after a read that has found nothing new. `turn` makes one turn of progress, as a read does.
  template <typename Turn>
  void record_idle(const Turn& turn) {
    const std::uint32_t reads = idle_reads_.load(std::memory_order_relaxed) + 1;
    idle_reads_.store(reads, std::memory_order_relaxed);
    if (reads >= kReadsBeforeCheck && reads % kReadsPerCheck == 0) [[unlikely]]
      check(reads, turn);
  }
  /// Called after a read that has found something.
  void record_event() { idle_reads_.store(0, std::memory_order_relaxed); }

  static constexpr std::uint32_t kReadsPerCheck = 8;
  static constexpr std::uint32_t kReadsBeforeCheck = 24;
  static constexpr std::uint32_t kYieldIntervalMin = 32;
  static constexpr std::uint32_t kYieldIntervalMax = 1024;
  static constexpr std::uint64_t kTicksUnbroken = 1 << 15;  ///< ten to thirty microseconds

  /// Returns the next yield interval. `interval`: the last yield interval. `away`: for how many ticks each of
  /// the other threads had the processor during the last yield, on average.
  static constexpr std::uint32_t next_yield_interval(std::uint32_t interval, std::uint64_t away) {
    if (away < kTicksAlone) return interval < kYieldIntervalMax ? 2 * interval : kYieldIntervalMax;
    return away < kTicksLong ? kYieldIntervalMin : kYieldIntervalMax;
  }

 private:
  /// If a yield takes fewer ticks than this, no other thread ran, and the ticks are those of the system call.
  static constexpr std::uint64_t kTicksAlone = 1 << 12;
  /// Several waiting ranks, which run for some hundred us each, take less than this.
  static constexpr std::uint64_t kTicksLong = 1 << 21;

  static constexpr std::uint64_t kTicksSpinning = kTicksLong / 2;

  /// After a gap the count of idle reads begins with this value, so that the next yield follows one interval
  /// later.
  static constexpr std::uint32_t kReadsAfterGap = kYieldIntervalMax;

  static constexpr std::uint32_t kChecksPerTiming = 16;

  std::uint64_t own_turns(std::uint64_t now, const std::function<void()>& turn);
  std::uint64_t yield();
  void check(std::uint32_t reads, const std::function<void()>& turn);

  Platform& platform_;
  /// All accesses to the following members are relaxed. If several threads read, the counts are imprecise.
  /// This imprecision changes only the intervals.
  std::atomic<std::uint32_t> idle_reads_{0};
  std::atomic<std::uint32_t> yield_interval_{kYieldIntervalMax};
  std::atomic<std::uint64_t> checked_at_{0};   ///< the clock at the last check, in ticks
  std::atomic<std::uint64_t> spins_since_{0};  ///< the clock when this reader began to spin without a break
  std::atomic<std::uint64_t> own_turns_{0};    ///< the smaller of the last two timings, in ticks
  std::atomic<std::uint64_t> timed_{0};        ///< the last timing, in ticks
  std::atomic<std::uint32_t> slow_checks_{0};
};

}  // namespace cluster::api
