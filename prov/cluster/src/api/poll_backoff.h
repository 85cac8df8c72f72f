// Of whoever looks again and again. A reader that finds nothing for so long shares its processor: with more
// ranks than processors the one that has something to say would else wait for the end of this one's time
// slice.
//
// How often it yields depends on how long the others kept the processor the last time:
//
//   nobody was there   half as often from now on, down to once in kYieldIntervalMax looks
//   a short while      others that wait as we do, or do a little and wait for us: every kYieldIntervalMin
//   looks long               somebody computes, and would take a whole slice each time: rarely
//
// Some libraries wait for a blocking send without yielding; with four ranks to a processor each of them would
// else look in vain for a hundred microseconds while the one that is to answer is next in the queue.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/sleeper.h"

namespace cluster::api {

class PollBackoff {
 public:
  /// Nothing found, once more.
  void record_idle() {
    const std::uint32_t looks = looks_.load(std::memory_order_relaxed) + 1;
    looks_.store(looks, std::memory_order_relaxed);
    if (looks % kReadsPerCheck == 0) glance(looks);
  }
  /// Something.
  void record_event() { looks_.store(0, std::memory_order_relaxed); }

  static constexpr std::uint32_t kReadsPerCheck = 32;
  static constexpr std::uint32_t kYieldIntervalMin = kReadsPerCheck;
  static constexpr std::uint32_t kYieldIntervalMax = 32 * kReadsPerCheck;

  /// After others had the processor for so many ticks; `every` so many looks it was yielded till now.
  static constexpr std::uint32_t next_yield_interval(std::uint32_t every, std::uint64_t away) {
    if (away < kTicksAlone) return every < kYieldIntervalMax ? 2 * every : kYieldIntervalMax;
    return away < kTicksLong ? kYieldIntervalMin : kYieldIntervalMax;
  }

 private:
  /// Applications yield between two looks, too, each time for as long as others like: so naps go by time. Who
  /// has just found something is in the middle of an exchange, which a nap would hold up by its length.
  void glance(std::uint32_t looks) {
    std::uint64_t rested = looks == kReadsPerCheck ? 0 : rested_.load(std::memory_order_relaxed);
    engine::Sleeper::nap_if_due(rested);
    rested_.store(rested, std::memory_order_relaxed);
    const std::uint32_t every = looks_per_yield_.load(std::memory_order_relaxed);
    if (looks % every == 0)
      looks_per_yield_.store(next_yield_interval(every, engine::Sleeper::yield()), std::memory_order_relaxed);
  }

  static constexpr std::uint64_t kTicksAlone = 1 << 12;  ///< a microsecond and a half
  static constexpr std::uint64_t kTicksLong =
      1 << 21;  ///< most of a millisecond: others take turns of hundreds
  /// In vain, in a row; imprecise if several threads look: it is a rhythm.
  std::atomic<std::uint32_t> looks_{0};
  std::atomic<std::uint32_t> looks_per_yield_{kYieldIntervalMax};
  std::atomic<std::uint64_t> rested_{0};  ///< when this row began, or since its last nap; in ticks
};

}  // namespace cluster::api
