// Two words in shared memory. With them the writer of a ring keeps the reader from taking segments, for the
// few microseconds in which the writer takes some back (shm/recall.h). The reader pays two stores and a load
// for each batch.
//
// Reader and writer never take segments at the same time. The reader sets `taking` and then looks at `held`;
// the writer sets `held`, executes a fence and then looks at `taking`. With a full fence on both sides at
// least one of them sees the other, and gives way: a reader leaves its segments in the ring, a writer tries
// again later. As with a doorbell, the writer's fence covers both processes if both take part in
// os/process_fence.h (kFenced says that the writer takes part). Otherwise the reader executes a fence, too.
//
// If the writer dies while it holds the ring, the reader calls ignore_writer() and reads the ring to the end.
// A reader that finds the ring held may go to sleep, so after resume() the writer looks at the reader's
// doorbell word.
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
  /// Called once, before the reader sees the ring.
  void announce_fence() { held_.store(resting(), std::memory_order_relaxed); }
  /// Keeps the reader from taking segments. Returns false if the reader is taking some now. The writer must
  /// call resume() in either case.
  bool hold() {
    held_.store(resting() | kHeld, std::memory_order_seq_cst);
    os::fence_processes();
    return taking_.load(std::memory_order_seq_cst) == 0;
  }
  /// Lets the reader take segments again. This is a full fence: the writer then sees what the reader wrote
  /// before it looked.
  void resume() { held_.exchange(resting(), std::memory_order_seq_cst); }

  // --- the reader ---
  /// Begins a batch. Returns true if the reader may take segments; then it must call end() after the batch.
  bool begin() {
    taking_.store(1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (held_.load(std::memory_order_acquire) == kFenced && fenced_) [[likely]]
      return true;
    return begin_with_fence();
  }
  void end() { taking_.store(0, std::memory_order_release); }
  /// Called when the writer has died: begin() then no longer minds that the writer holds the ring.
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

  std::atomic_ref<std::uint32_t> held_;    ///< only the writer sets it
  std::atomic_ref<std::uint32_t> taking_;  ///< only the reader sets it
  bool fenced_;
  bool writer_alive_ = true;
};

}  // namespace cluster::shm
