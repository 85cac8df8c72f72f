#include "shm/ring_reader.h"

#include <cassert>
#include <cstring>

namespace cluster::shm {
namespace {

constexpr std::uint32_t kLagFraction = 4;

/// One read each: the compiler may not come back for a value that the peer has changed meanwhile.
template <typename Integer>
Integer once(const Integer& field) {
  return static_cast<const volatile Integer&>(field);
}

}  // namespace

RingReader::RingReader(Bytes memory, const Geometry& geometry)
    : slots_(reinterpret_cast<Slot*>(memory.data() + geometry.slots_begin())),
      control_(reinterpret_cast<Control*>(memory.data())),
      arena_(memory.data() + geometry.arena_begin()),
      segment_doorbell_(control_->segment_doorbell),
      space_doorbell_(control_->space_doorbell),
      slot_count_(geometry.slots),
      arena_bytes_(geometry.arena_bytes),
      slots_lag_(geometry.slots / kLagFraction),
      arena_lag_(geometry.arena_bytes / kLagFraction) {
  assert(geometry.valid() && memory.size() == geometry.total_bytes());
  segment_doorbell_.announce_fence();
}

bool RingReader::rest(std::uint32_t sequence) {
  idle_word_ = sequence;
  if (position_ != published_) publish();
  // Messages that just miss the slot cost two lines. If the last one was such, the next is expected to
  // be: then its second line comes together with the first instead of after it.
  if (expects_two_lines()) __builtin_prefetch(arena_ + arena_place_);
  // The slot still carries the segment of the lap before, or nothing in the first lap.
  const std::uint32_t lap_before = position_ + 1 - slot_count_;
  const bool first_lap = position_ - kFirstNumber < slot_count_;
  if (sequence == lap_before || (first_lap && sequence == 0)) [[likely]]
    return false;
  return breach();
}

bool RingReader::read(const Slot& slot, wire::Segment& segment, ConstBytes& payload) {
  if (broken_) return false;
  if (shown_) publish();  // whoever looks twice is not taking: let the writer have the rest
  const std::uint32_t length = once(slot.length);
  const std::uint32_t offset = once(slot.offset);
  const std::size_t header_size = once(slot.header_size);
  std::memcpy(slot_copy_, slot.inline_bytes, sizeof slot_copy_);
  if (header_size == 0 || header_size > sizeof slot_copy_) return breach();
  if (wire::decode({slot_copy_, header_size}, segment) != header_size || segment.length != length)
    return breach();
  if (offset == Slot::kInline) {
    if (length > sizeof slot_copy_ - header_size) return breach();
    payload = {slot_copy_ + header_size, length};
    block_ = 0;
  } else {
    if (offset % kLineBytes != 0 || offset >= arena_bytes_ || length > arena_bytes_ - offset) return breach();
    payload = {arena_ + offset, length};
    if (!shown_) {
      const std::uint32_t end = offset + block_bytes(length);
      block_ = (end - arena_place_) & (arena_bytes_ - 1);  // with what was skipped before it
      arena_place_ = end & (arena_bytes_ - 1);
    }
  }
  shown_ = true;
  return true;
}

bool RingReader::breach() {
  broken_ = true;
  return false;
}

void RingReader::publish() {
  std::atomic_ref(control_->head).store(position_, std::memory_order_release);
  published_ = position_;
  arena_taken_ = 0;
  if (space_doorbell_.take_if_requested()) [[unlikely]]
    doorbell_due_ = true;
}

}  // namespace cluster::shm
