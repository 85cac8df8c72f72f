// The reading end of a ring (layout.h), over any memory: a test may hold both ends in one thread. The reader
// trusts nothing in the memory: it reads every field once, checks it, and only then uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "shm/doorbell_word.h"
#include "shm/layout.h"
#include "shm/recall_word.h"
#include "wire/segment.h"

namespace cluster::shm {

/// A whole eager message; valid until pop().
struct ShortMessage {
  wire::EagerHeader header;
  const std::byte* payload = nullptr;
};

class RingReader {
 public:
  /// `memory`: geometry.total_bytes(), aligned to kLineBytes, outlives the reader.
  RingReader(Bytes memory, const Geometry& geometry);

  /// Begins a batch: call peek() and pop() only between this and end_batch(). Returns false if the writer is
  /// taking segments back now: the segments have to wait.
  bool begin_batch() { return recall_.begin(); }
  void end_batch() {
    std::atomic_ref(ring_.control->next).store(position_, std::memory_order_relaxed);
    recall_.end();
  }
  /// Called when the writer has died, perhaps while it took segments back.
  void ignore_writer() { recall_.ignore_writer(); }

  /// Shows the next segment. Returns false if there is none. `payload` may lie in the ring or in the reader,
  /// and is valid until pop() or the next peek().
  bool peek(wire::Segment& segment, ConstBytes& payload) {
    const std::uint32_t sequence = std::atomic_ref(next_word()).load(std::memory_order_acquire);
    return sequence == next_value() ? read(segment, payload) : find_nothing(sequence);
  }
  /// Shows the next segment, which must exist (has_segment()), if it is a whole eager message. Returns false
  /// if only peek() can tell what it is, or if peek() has already shown it.
  bool peek_short(ShortMessage& message);
  bool has_segment() const {
    return std::atomic_ref(next_word()).load(std::memory_order_acquire) == next_value();
  }
  /// True if the next segment seems to be a write that needs no answer; peek() checks it.
  bool next_is_unanswered() const {
    return has_segment() && !shown_ && wire::seems_unanswered(ring_.slot(position_).inline_bytes);
  }
  /// True if peek() would find nothing, and the writer has not broken the rules.
  bool found_empty() {
    const std::uint32_t sequence = std::atomic_ref(next_word()).load(std::memory_order_acquire);
    return sequence != next_value() && !find_nothing(sequence) && !broken_;
  }
  /// Gives the segment that peek() or peek_short() showed back to the writer.
  void pop() {
    ++position_;
    shown_ = false;
    if (block_ != 0) {
      arena_place_ = (arena_place_ + block_) & ring_.arena_mask;
      arena_taken_ += block_;
    }
    if (position_ - published_ >= ring_.slot_count() / kLagFraction ||
        arena_taken_ >= ring_.arena_bytes() / kLagFraction) {
      publish();
    }
  }

  /// Refuses the segment that peek() showed: it was not executed and needs no answer.
  void refuse() { ring_.refusal(position_).store(std::uint64_t{position_} + 1, std::memory_order_relaxed); }

  /// The word that tells of the next segment, and its value once there is one.
  std::uint32_t& next_word() const { return ring_.slot(position_).sequence; }
  std::uint32_t next_value() const { return position_ + 1; }
  /// The value of next_word() when peek() last found nothing.
  std::uint32_t idle_word() const { return idle_word_; }
  /// True if the next segment probably has payload in the arena: then each peek() prefetches that payload,
  /// and is worth its cost.
  bool expects_two_lines() const { return block_ == kLineBytes; }

  /// Asks the writer to ring after its next segment. Returns true if the writer had not been asked yet.
  bool request_doorbell() { return segment_doorbell_.request(); }
  /// True if the writer's doorbell must be rung now, for the space that was freed.
  bool take_doorbell_request() {
    if (!doorbell_due_) [[likely]]
      return false;
    return std::exchange(doorbell_due_, false);
  }

  /// True once the writer broke the rules: peek() finds nothing any more.
  bool broken() const { return broken_; }

  // --- what the two ends say of themselves ---
  /// Tells the writer that its ring has a reader, and the number of the reader's doorbell.
  void attach(std::uint64_t doorbell) {
    std::atomic_ref(ring_.control->reader_doorbell).store(doorbell, std::memory_order_relaxed);
    set_state(EndState::kAttached);
  }
  /// Tells the writer that its ring has no reader any more.
  void close() { set_state(EndState::kClosed); }
  /// True once the writer writes no more; what it wrote can still be read.
  bool writer_closed() const {
    return std::atomic_ref(ring_.control->writer_state).load(std::memory_order_acquire) == EndState::kClosed;
  }

 private:
  /// One part in this many, of the slots or of the arena, may be taken before the reader publishes.
  static constexpr std::uint32_t kLagFraction = 4;

  /// Reads the field exactly once: the compiler must not read it again, since the peer may change it
  /// meanwhile.
  template <typename Integer>
  static Integer once(const Integer& field) {
    return static_cast<const volatile Integer&>(field);
  }

  /// Finds the payload of a segment in the arena, and the size of its block. Returns false if no payload can
  /// lie there.
  bool find_in_arena(std::uint32_t offset, std::uint32_t length, const std::byte*& payload) {
    if (offset % kLineBytes != 0 || offset >= ring_.arena_bytes() || length > ring_.arena_bytes() - offset)
      return false;
    payload = ring_.arena + offset;
    block_ = (offset + block_bytes(length) - arena_place_) & ring_.arena_mask;  // with what was skipped
    return true;
  }
  void set_state(std::uint32_t state) {
    std::atomic_ref(ring_.control->reader_state).store(state, std::memory_order_release);
  }
  bool find_nothing(std::uint32_t sequence);
  bool read(wire::Segment& segment, ConstBytes& payload);
  bool set_broken();
  void publish();

  RingView ring_;
  DoorbellWord segment_doorbell_;
  DoorbellWord space_doorbell_;
  RecallWord recall_;
  std::uint32_t position_ = kFirstNumber;   ///< number of the next segment to take
  std::uint32_t published_ = kFirstNumber;  ///< what `head` says
  std::uint32_t arena_place_ = 0;           ///< where the newest block taken ends, in the arena
  std::uint32_t arena_taken_ = 0;           ///< bytes taken since published_
  std::uint32_t block_ = 0;                 ///< bytes of the arena that the segment shown occupies
  std::uint32_t idle_word_ = 0;
  bool shown_ = false;  ///< peek() has shown the segment at position_
  bool doorbell_due_ = false;
  bool broken_ = false;
  std::byte slot_copy_[Slot::kInlineBytes];  ///< copy of the slot shown, out of the writer's reach
};

inline bool RingReader::peek_short(ShortMessage& message) {
  const Slot& slot = ring_.slot(position_);
  if (shown_ || broken_) return false;
  if (!message.header.read(slot.inline_bytes)) return false;
  const std::size_t header_size = message.header.size();
  const std::uint32_t length = message.header.length;
  if (once(slot.header_size) != header_size || once(slot.length) != length) [[unlikely]]
    return false;
  const std::uint32_t offset = once(slot.offset);
  if (offset != Slot::kInline) return find_in_arena(offset, length, message.payload);
  message.payload = slot.inline_bytes + header_size;
  block_ = 0;
  return length <= Slot::kInlineBytes - header_size;
}

inline bool RingReader::find_nothing(std::uint32_t sequence) {
  idle_word_ = sequence;
  if (position_ != published_) publish();
  // A message that is slightly too long for its slot costs two lines. If the last message was one of these,
  // the next probably is, too: its second line is fetched together with the first instead of after it.
  if (expects_two_lines()) __builtin_prefetch(ring_.arena + arena_place_);
  // The slot still carries the segment of the lap before, or nothing in the first lap.
  const std::uint32_t lap_before = position_ + 1 - ring_.slot_count();
  if (sequence == lap_before) [[likely]]
    return false;
  const bool first_lap = position_ - kFirstNumber < ring_.slot_count();
  return first_lap && sequence == 0 ? false : set_broken();
}

inline void RingReader::publish() {
  std::atomic_ref(ring_.control->head).store(position_, std::memory_order_release);
  published_ = position_;
  arena_taken_ = 0;
  if (space_doorbell_.take_request()) [[unlikely]]
    doorbell_due_ = true;
}

}  // namespace cluster::shm
