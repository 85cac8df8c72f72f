// The reading end of a ring (layout.h), over any memory: a test may hold both ends in one thread.
// It trusts nothing it reads there: every field is read once, checked, and only then used.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "shm/doorbell_word.h"
#include "shm/layout.h"
#include "wire/segment.h"

namespace cluster::shm {

class RingReader {
 public:
  /// `memory`: geometry.total_bytes(), aligned to kLineBytes, outlives the reader.
  RingReader(Bytes memory, const Geometry& geometry);

  /// Shows the next segment; false if there is none. `payload` may lie in the ring or in the reader;
  /// it is valid until pop() or the next peek().
  bool peek(wire::Segment& segment, ConstBytes& payload) {
    const Slot& slot = slots_[position_ & (slot_count_ - 1)];
    const std::uint32_t sequence =
        std::atomic_ref(const_cast<std::uint32_t&>(slot.sequence)).load(std::memory_order_acquire);
    if (sequence != position_ + 1) return rest(sequence);
    return read(slot, segment, payload);
  }

  /// True if every look is worth while, for it fetches in advance what probably comes with the next segment.
  bool expects_two_lines() const { return block_ == kLineBytes; }
  /// Where peek() has found nothing: the word that changes when there is something.
  std::uint32_t& next_word() const { return slots_[position_ & (slot_count_ - 1)].sequence; }
  /// What it will be.
  std::uint32_t next_value() const { return position_ + 1; }
  /// What it was.
  std::uint32_t idle_word() const { return idle_word_; }

  /// Gives back what peek() showed.
  void pop() {
    ++position_;
    arena_taken_ += block_;
    shown_ = false;
    if (position_ - published_ >= slots_lag_ || arena_taken_ >= arena_lag_) publish();
  }

  /// Asks the writer to knock behind its next segment; true if it had not been asked.
  bool request_doorbell() { return segment_doorbell_.request_doorbell(); }
  /// True if the writer has to be told, now, that there is room.
  bool take_doorbell_due() {
    if (!doorbell_due_) [[likely]]
      return false;
    doorbell_due_ = false;
    return true;
  }

  /// True once the writer broke the rules: peek() finds nothing any more.
  bool broken() const { return broken_; }

 private:
  bool rest(std::uint32_t sequence);
  bool read(const Slot& slot, wire::Segment& segment, ConstBytes& payload);
  bool breach();
  void publish();

  Slot* slots_;
  Control* control_;
  const std::byte* arena_;
  DoorbellWord segment_doorbell_;
  DoorbellWord space_doorbell_;
  std::uint32_t slot_count_;
  std::uint32_t arena_bytes_;
  std::uint32_t slots_lag_;                 ///< taken but unpublished slots that are too many
  std::uint32_t arena_lag_;                 ///< the same of the arena, bytes
  std::uint32_t position_ = kFirstNumber;   ///< number of the next segment to take
  std::uint32_t published_ = kFirstNumber;  ///< the same as the writer may know it
  std::uint32_t arena_place_ = 0;           ///< where the newest block seen ends, in the arena
  std::uint32_t arena_taken_ = 0;           ///< bytes taken since published_
  std::uint32_t block_ = 0;                 ///< bytes of the arena that the segment shown occupies
  std::uint32_t idle_word_ = 0;             ///< what peek() saw where it found nothing
  bool shown_ = false;                      ///< peek() has shown the segment at position_
  bool doorbell_due_ = false;
  bool broken_ = false;
  std::byte slot_copy_[Slot::kInlineBytes];  ///< of the slot shown: out of the writer's reach
};

}  // namespace cluster::shm
