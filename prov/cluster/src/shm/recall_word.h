// Two words in shared memory. With them the writer of a ring holds the reader: for a few microseconds the
// reader cannot take segments, while the writer takes some back (shm/recall.h). These words cost the reader
// two stores and a load for each batch.
//
// Reader and writer never take segments at the same time. The reader sets `taking` and then reads `held`. The
// writer sets `held`, executes a fence and then reads `taking`. With a full fence on both sides, at least one
// of them sees that the other has set its word, and gives up. If it is the reader, it leaves its segments in
// the ring. If it is the writer, it tries again later. As with a doorbell, the writer's fence is a fence for
// both processes if both have registered with os/process_fence.h. (kFenced tells the reader that the writer
// has registered.) If one of them has not registered, the reader executes a fence, too.
//
// If the writer dies while it holds the reader, the reader calls ignore_writer() and reads the rest of the
// ring. A reader that finds that it is held may go to sleep. So after resume() the writer must check the
// reader's doorbell word.
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
  /// Holds the reader. Returns false if the reader is taking segments now. The writer must call resume() in
  /// either case.
  bool hold() {
    held_.store(resting() | kHeld, std::memory_order_seq_cst);
    os::fence_processes();
    return taking_.load(std::memory_order_seq_cst) == 0;
  }
  /// Lets the reader take segments again. Executes a full fence. So the writer sees everything that the
  /// reader had written before the reader read `held`, such as a request for the doorbell.
  void resume() { held_.exchange(resting(), std::memory_order_seq_cst); }

  // --- the reader ---
  /// Begins a batch. Returns true if the reader may take segments. If so, it must call end() after the batch.
  bool begin() {
    taking_.store(1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (held_.load(std::memory_order_acquire) == kFenced && fenced_) [[likely]]
      return true;
    return begin_with_fence();
  }
  void end() { taking_.store(0, std::memory_order_release); }
  /// Called if the writer has died. From then on begin() ignores that the writer holds the reader.
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
