#include "shm/ring_writer.h"

#include <utility>

namespace cluster::shm {

RingWriter::RingWriter(Bytes memory, const Geometry& geometry)
    : ring_(memory, geometry),
      segment_doorbell_(ring_.control->segment_doorbell),
      space_doorbell_(ring_.control->space_doorbell),
      payload_max_(geometry.payload_max()),
      arena_ends_(std::make_unique<std::uint32_t[]>(geometry.slots)) {
  assert(geometry.valid() && memory.size() == geometry.total_bytes());
  std::atomic_ref(ring_.control->head).store(head_, std::memory_order_relaxed);
  space_doorbell_.announce_fence();
}

bool RingWriter::reserve(std::uint32_t bytes, std::uint32_t& offset) {
  const std::uint32_t to_end = ring_.arena_bytes() - (arena_end_ & ring_.arena_mask);
  const std::uint32_t skip = bytes > to_end ? to_end : 0;
  if (!arena_free(skip + bytes)) {
    read_head();
    if (!arena_free(skip + bytes)) return false;
  }
  offset = (arena_end_ + skip) & ring_.arena_mask;
  arena_end_ += skip + bytes;
  return true;
}

void RingWriter::read_head() {
  if (broken_) return;
  const std::uint32_t head = std::atomic_ref(ring_.control->head).load(std::memory_order_acquire);
  if (head == head_) return;
  if (head - head_ > position_ - head_) {
    broken_ = true;
    return;
  }
  head_ = head;
  arena_begin_ = arena_ends_[(head - 1) & ring_.slot_mask];
}

bool RingWriter::newly_stalled() {
  const std::uint32_t head = std::atomic_ref(ring_.control->head).load(std::memory_order_relaxed);
  const bool moved = std::exchange(stalled_head_, head) != head;
  if (moved) stall_reported_ = false;
  if (moved || head == position_) return false;
  return !std::exchange(stall_reported_, true);
}

bool RingWriter::drained() const {
  return std::atomic_ref(ring_.control->head).load(std::memory_order_acquire) == position_;
}

}  // namespace cluster::shm
