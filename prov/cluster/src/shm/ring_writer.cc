#include "shm/ring_writer.h"

#include <cassert>
#include <utility>

#include "base/short_copy.h"

namespace cluster::shm {

RingWriter::RingWriter(Bytes memory, const Geometry& geometry)
    : slots_(reinterpret_cast<Slot*>(memory.data() + geometry.slots_begin())),
      control_(reinterpret_cast<Control*>(memory.data())),
      arena_(memory.data() + geometry.arena_begin()),
      segment_doorbell_(control_->segment_doorbell),
      space_doorbell_(control_->space_doorbell),
      payload_max_(geometry.payload_max()),
      slot_count_(geometry.slots),
      arena_bytes_(geometry.arena_bytes),
      arena_ends_(std::make_unique<std::uint32_t[]>(geometry.slots)) {
  assert(geometry.valid() && memory.size() == geometry.total_bytes());
  std::atomic_ref(control_->head).store(head_, std::memory_order_relaxed);
  space_doorbell_.announce_fence();
}

bool RingWriter::post(const wire::Segment& segment, const Gather& payload) {
  assert(payload.length == segment.length && payload.length <= payload_max_);
  if (!slot_free()) return false;
  Slot& slot = slots_[position_ & (slot_count_ - 1)];
  const auto length = static_cast<std::uint32_t>(payload.length);
  const std::size_t header_size = wire::encode(segment, slot.inline_bytes);
  std::uint32_t offset = Slot::kInline;
  if (header_size + length <= Slot::kInlineBytes) {
    gather_short(payload, slot.inline_bytes + header_size);
  } else {
    if (!reserve(block_bytes(length), offset)) return false;
    payload.copy_to(arena_ + offset);
  }
  slot.length = length;
  slot.offset = offset;
  slot.header_size = static_cast<std::uint8_t>(header_size);
  arena_ends_[position_ & (slot_count_ - 1)] = arena_end_;
  ++position_;
  std::atomic_ref(slot.sequence).store(position_, std::memory_order_release);
  return true;
}

bool RingWriter::slot_free() {
  if (position_ - head_ < slot_count_) [[likely]]
    return true;
  read_head();
  return position_ - head_ < slot_count_;
}

bool RingWriter::reserve(std::uint32_t bytes, std::uint32_t& offset) {
  const std::uint32_t to_end = arena_bytes_ - (arena_end_ & (arena_bytes_ - 1));
  const std::uint32_t skip = bytes > to_end ? to_end : 0;
  if (!arena_free(skip + bytes)) {
    read_head();
    if (!arena_free(skip + bytes)) return false;
  }
  offset = (arena_end_ + skip) & (arena_bytes_ - 1);
  arena_end_ += skip + bytes;
  return true;
}

void RingWriter::read_head() {
  if (broken_) return;
  const std::uint32_t head = std::atomic_ref(control_->head).load(std::memory_order_acquire);
  if (head == head_) return;
  if (head - head_ > position_ - head_) {
    broken_ = true;
    return;
  }
  head_ = head;
  arena_begin_ = arena_ends_[(head - 1) & (slot_count_ - 1)];
}

bool RingWriter::newly_stalled() {
  const std::uint32_t head = std::atomic_ref(control_->head).load(std::memory_order_relaxed);
  const bool moved = std::exchange(stalled_head_, head) != head;
  if (moved) stall_reported_ = false;
  if (moved || head == position_) return false;
  return !std::exchange(stall_reported_, true);
}

bool RingWriter::drained() const {
  return std::atomic_ref(control_->head).load(std::memory_order_acquire) == position_;
}

}  // namespace cluster::shm
