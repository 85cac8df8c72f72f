// When a reader of an empty queue or counter gives the processor away.
//
// With more ranks than processors the peer that has to answer may wait for the reader's processor; a reader
// that spins would use up its time slice. So unbroken spinning yields.
//
// A look is not a wait: where every thread has a processor, no read ever sleeps, however long its caller
// spins. On crowded processors a yield is not enough: some kernels (seen with 6.18) let threads that only
// yield keep a processor from others, the peer's and the kernel's own, for ten seconds and more. There the
// reader sleeps for the shortest time there is, after about a millisecond of unbroken spinning, which costs it
// no more than its yields do: they hand the processor to another thread for as long as that wants it.
//
// Invariant: a program that works between its reads for longer than it reads is never delayed, crowded or
// not. Spinning is unbroken as long as every kReadsPerCheck idle reads take at most kTicksUnbroken. After a
// longer gap the reads to the next yield are counted afresh, and the gap is subtracted from the spinning: a
// program that works spins less than it works, whereas a reader that is only interrupted now and then (a
// caller that yields itself, as Open MPI does) gets to its sleep all the same. After an event everything
// starts afresh. The first kReadsBeforeCheck idle reads do not read the clock.
//
// The yield interval follows how long other threads kept the processor after the last yield:
//
//   none ran         twice as long, at most kYieldIntervalMax reads
//   a short time     kYieldIntervalMin: they wait as well, or do little and wait for this one
//   a long time      kYieldIntervalMax: they compute, and each yield costs a whole time slice
#pragma once

#include <atomic>
#include <cstdint>

#include "api/platform.h"

namespace cluster::api {

class PollBackoff {
 public:
  explicit PollBackoff(Platform& platform) : platform_(platform) {}

  /// A read found nothing new.
  void record_idle() {
    const std::uint32_t reads = idle_reads_.load(std::memory_order_relaxed) + 1;
    idle_reads_.store(reads, std::memory_order_relaxed);
    if (reads >= kReadsBeforeCheck && reads % kReadsPerCheck == 0) [[unlikely]]
      check(reads);
  }
  /// A read found something.
  void record_event() { idle_reads_.store(0, std::memory_order_relaxed); }

  static constexpr std::uint32_t kReadsPerCheck = 8;
  static constexpr std::uint32_t kReadsBeforeCheck = 24;
  static constexpr std::uint32_t kYieldIntervalMin = 32;
  static constexpr std::uint32_t kYieldIntervalMax = 1024;
  static constexpr std::uint64_t kTicksUnbroken = 1 << 15;     ///< ten to thirty microseconds
  static constexpr std::uint64_t kTicksBeforeSleep = 1 << 21;  ///< about a millisecond

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

  void check(std::uint32_t reads);
  void spun_long();

  Platform& platform_;
  /// All relaxed: with several readers the counts are imprecise, which changes the intervals only.
  std::atomic<std::uint32_t> idle_reads_{0};
  std::atomic<std::uint32_t> yield_interval_{kYieldIntervalMax};
  std::atomic<std::uint64_t> checked_at_{0};  ///< ticks at the last check
  std::atomic<std::uint64_t> spun_{0};        ///< ticks since an event or spun_long(), gaps subtracted
};

}  // namespace cluster::api
