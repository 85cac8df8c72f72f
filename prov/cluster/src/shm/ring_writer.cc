#include "shm/ring_writer.h"

#include <utility>

namespace cluster::shm {

RingWriter::RingWriter(Bytes memory, const Geometry& geometry)
    : ring_(memory, geometry),
      segment_doorbell_(ring_.control->segment_doorbell),
      space_doorbell_(ring_.control->space_doorbell),
      recall_(ring_.control->held, ring_.control->taking),
      payload_max_(geometry.payload_max()),
      arena_ends_(std::make_unique<std::uint32_t[]>(geometry.slots)) {
  assert(geometry.valid() && memory.size() == geometry.total_bytes());
  std::atomic_ref(ring_.control->head).store(head_, std::memory_order_relaxed);
  std::atomic_ref(ring_.control->next).store(head_, std::memory_order_relaxed);
  space_doorbell_.announce_fence();
  recall_.announce_fence();
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
  if (broken_ || blocked_) return;
  const std::uint32_t head = std::atomic_ref(ring_.control->head).load(std::memory_order_acquire);
  if (head == head_) return;
  if (head - head_ > position_ - head_) {
    broken_ = true;
    return;
  }
  head_ = head;
  if (head - taken_ <= position_ - taken_) taken_ = head;
  arena_begin_ = arena_ends_[(head - 1) & ring_.slot_mask];
}

bool RingWriter::newly_stalled() {
  const std::uint32_t head = std::atomic_ref(ring_.control->head).load(std::memory_order_relaxed);
  const bool moved = std::exchange(stalled_head_, head) != head;
  if (moved) stall_reported_ = false;
  if (moved || head == position_) return false;
  return !std::exchange(stall_reported_, true);
}

bool RingWriter::hold() {
  if (broken_ || !recall_.hold()) return false;
  const std::uint32_t next = std::atomic_ref(ring_.control->next).load(std::memory_order_relaxed);
  broken_ = next - head_ > position_ - head_;
  taken_ = next;
  return !broken_;
}

ConstBytes RingWriter::payload(std::uint32_t number) const {
  const Slot& slot = ring_.slot(number);
  const std::uint32_t length = static_cast<const volatile std::uint32_t&>(slot.length);
  const std::uint32_t offset = static_cast<const volatile std::uint32_t&>(slot.offset);
  const std::size_t header_size = static_cast<const volatile std::uint8_t&>(slot.header_size);
  if (offset == Slot::kInline) {
    if (header_size + std::size_t{length} > Slot::kInlineBytes) return {};
    return {slot.inline_bytes + header_size, length};
  }
  if (offset >= ring_.arena_bytes() || length > ring_.arena_bytes() - offset) return {};
  return {ring_.arena + offset, length};
}

/// Withdraws the segment by a single store, so the ring stays valid if this process dies before or after the
/// store. The payload stays in the arena until the reader returns the slot, as for other segments.
void RingWriter::withdraw(std::uint32_t number) { ring_.slot(number).withdrawn = 1; }

bool RingWriter::drained() const {
  return std::atomic_ref(ring_.control->head).load(std::memory_order_acquire) == position_;
}

}  // namespace cluster::shm
