// A word in shared memory by which one side asks the other to knock (at their socket) when it has done
// something: the reader of a ring when there is a segment, the writer when there is room.
//
// No wake is missed. The sleeper: request_doorbell(), os::fence_processes(), look once more, sleep. The other
// side: write what the sleeper waits for, then take_if_requested(). Either the sleeper's look comes late
// enough to find what was written, or the other side's look at this word comes late enough to find it asked:
// that needs a full fence on both sides between writing and looking. If both processes have joined the
// fences, the sleeper's covers both; the word says whether the sleeper has. Otherwise take_if_requested()
// fences for itself. Who finds itself asked takes the question back before it knocks, so there is one knock
// per question, and the socket stays readable until the sleeper hushes it, which it does only before it asks
// again. So however many threads sleep on one descriptor: the word asks, or the descriptor is readable, or
// somebody is about to knock (or has died, which makes it readable as well).
#pragma once

#include <atomic>
#include <cstdint>

#include "os/process_fence.h"

namespace cluster::shm {

class DoorbellWord {
 public:
  explicit DoorbellWord(std::uint32_t& word) : word_(word), joined_(os::register_process_fence()) {}

  // --- the side that sleeps ---
  /// True if it had not been asked: then a fence is due.
  bool request_doorbell() {
    const std::uint32_t question = kRequested | (joined_ ? kFenced : 0);
    return (word_.exchange(question, std::memory_order_seq_cst) & kRequested) == 0;
  }

  // --- the side that knocks ---
  /// True if a knock is due now.
  bool take_if_requested() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    std::uint32_t word = word_.load(std::memory_order_relaxed);
    if (joined_ && (word & kFenced)) [[likely]] {
      if (!(word & kRequested)) [[likely]]
        return false;
    }
    return take_request();
  }

  /// The sleeper says that its fences reach others, before it sleeps for the first time.
  void announce_fence() {
    if (joined_) word_.fetch_or(kFenced, std::memory_order_seq_cst);
  }

 private:
  static constexpr std::uint32_t kRequested = 1;
  static constexpr std::uint32_t kFenced = 2;  ///< the sleeper fences for both

  /// The exchange is the fence.
  bool take_request() { return (word_.fetch_and(~kRequested, std::memory_order_seq_cst) & kRequested) != 0; }

  std::atomic_ref<std::uint32_t> word_;
  bool joined_;
};

}  // namespace cluster::shm
