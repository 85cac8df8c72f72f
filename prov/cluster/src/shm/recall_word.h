// Two words in shared memory by which the writer of a ring keeps its reader from taking segments, for the few
// microseconds in which it takes some back (shm/recall.h). The reader pays two stores and a load for each
// batch.
//
// Never both. The reader sets `taking` and then looks at `held`; the writer sets `held`, executes a fence and
// then looks at `taking`. With a full fence on both sides at least one of them sees the other, and gives way:
// a reader leaves its segments where they are, a writer tries again later. As with a doorbell, the writer's
// fence covers both processes if both take part in os/process_fence.h (kFenced says that the writer does);
// otherwise the reader executes one of its own.
//
// If the writer dies in between, its reader calls ignore_writer() and reads the ring to the end. A reader that finds the
// ring held may go to sleep: so after resume() the writer looks at the reader's doorbell word.
#pragma once

#include <atomic>
#include <cstdint>

#include "os/process_fence.h"

namespace cluster::shm {

class RecallWord {
 public:
  RecallWord(std::uint32_t& held, std::uint32_t& taking)
      : held_(held), taking_(taking), fenced_(os::register_process_fence()) {}

  // --- the writer ---
  /// Once, before the reader sees the ring.
  void announce_fence() { held_.store(resting(), std::memory_order_relaxed); }
  /// False: the reader is taking segments; then resume() is due nevertheless.
  bool hold() {
    held_.store(resting() | kHeld, std::memory_order_seq_cst);
    os::fence_processes();
    return taking_.load(std::memory_order_seq_cst) == 0;
  }
  /// A full fence: what the reader has written before it looked is seen.
  void resume() { held_.exchange(resting(), std::memory_order_seq_cst); }

  // --- the reader ---
  /// True: end() is due after the batch.
  bool begin() {
    taking_.store(1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (held_.load(std::memory_order_acquire) == kFenced && fenced_) [[likely]]
      return true;
    return begin_with_fence();
  }
  void end() { taking_.store(0, std::memory_order_release); }
  /// The writer has died.
  void ignore_writer() { writer_alive_ = false; }

 private:
  static constexpr std::uint32_t kHeld = 1;
  static constexpr std::uint32_t kFenced = 2;

  std::uint32_t resting() const { return fenced_ ? kFenced : 0; }
  bool begin_with_fence() {
    taking_.exchange(1, std::memory_order_seq_cst);
    if ((held_.load(std::memory_order_seq_cst) & kHeld) == 0 || !writer_alive_) return true;
    end();
    return false;
  }

  std::atomic_ref<std::uint32_t> held_;    ///< the writer's
  std::atomic_ref<std::uint32_t> taking_;  ///< the reader's
  bool fenced_;
  bool writer_alive_ = true;
};

}  // namespace cluster::shm
