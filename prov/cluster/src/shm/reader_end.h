// What the reader of a ring says of itself, and sees of the writer, beside the segments: that it has attached the ring, by
// which doorbell it is woken, and that either has closed its end.
#pragma once

#include <atomic>
#include <cstdint>

#include "shm/layout.h"

namespace cluster::shm {

class ReaderEnd {
 public:
  /// The memory outlives it.
  explicit ReaderEnd(Bytes memory) : control_(*reinterpret_cast<RingControl*>(memory.data())) {}

  /// The writer learns that its ring has a reader, and its doorbell.
  void attach(std::uint64_t doorbell) {
    std::atomic_ref(control_.reader_doorbell).store(doorbell, std::memory_order_relaxed);
    set_state(EndState::kAttached);
  }
  /// And that it has it no more.
  void close() { set_state(EndState::kClosed); }
  /// The writer writes no more; what it wrote can be read.
  bool writer_closed() const {
    return std::atomic_ref(control_.writer_state).load(std::memory_order_acquire) == EndState::kClosed;
  }

 private:
  void set_state(std::uint32_t state) {
    std::atomic_ref(control_.reader_state).store(state, std::memory_order_release);
  }

  RingControl& control_;
};

}  // namespace cluster::shm
