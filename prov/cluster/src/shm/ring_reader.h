// The reading end of a ring (layout.h). The memory may be of any kind, so a test can have both ends in one
// thread. The reader does not trust the memory. It reads every field only once, and checks the value before
// it uses the value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "shm/doorbell_word.h"
#include "shm/layout.h"
#include "shm/recall_word.h"
#include "wire/segment.h"

namespace cluster::shm {

/// A whole eager message in the ring. It is valid until pop().
struct ShortMessage {
  wire::EagerHeader header;
  const std::byte* payload = nullptr;
};

class RingReader {
 public:
  /// `memory` has geometry.total_bytes() bytes, is aligned to kLineBytes, and must outlive the reader.
  RingReader(Bytes memory, const Geometry& geometry);

  /// Begins a batch. The caller may call peek() and pop() only between begin_batch() and end_batch(). Returns
  /// false if the writer is taking segments back now. In this case the caller must try again later.
  bool begin_batch() { return recall_.begin(); }
  void end_batch() {
    std::atomic_ref(ring_.control->next).store(position_, std::memory_order_relaxed);
    recall_.end();
  }
  /// Called if the writer has died, perhaps while it took segments back.
  void ignore_writer() { recall_.ignore_writer(); }

  /// Shows the next segment. Returns false if there is none. `payload` refers to memory of the ring or of the
  /// reader, and is valid until pop() or the next peek().
  bool peek(wire::Segment& segment, ConstBytes& payload) {
    const std::uint32_t sequence = std::atomic_ref(next_word()).load(std::memory_order_acquire);
    return sequence == next_value() ? read(segment, payload) : find_nothing(sequence);
  }
  /// Shows the next segment if it is a whole eager message. has_segment() must be true. Returns false if the
  /// caller must call peek() instead, for example because peek() has already shown the segment.
  bool peek_short(ShortMessage& message);
  bool has_segment() const {
    return std::atomic_ref(next_word()).load(std::memory_order_acquire) == next_value();
  }
  /// Returns true if the next segment seems to be a write that gets no answer, and peek() has not shown it
  /// yet. This function does not check the segment; peek() does.
  bool next_is_unanswered() const {
    return has_segment() && !shown_ && wire::seems_unanswered(ring_.slot(position_).inline_bytes);
  }
  /// Returns true if peek() would find nothing, and the writer has not broken the rules.
  bool found_empty() {
    const std::uint32_t sequence = std::atomic_ref(next_word()).load(std::memory_order_acquire);
    return sequence != next_value() && !find_nothing(sequence) && !broken_;
  }
  /// Frees the slot of the segment that peek() or peek_short() showed, so that the writer can use it again.
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

  /// Refuses the segment that peek() showed. Called if this side has not executed a segment for which the
  /// writer expects no answer.
  void refuse() { ring_.refusal(position_).store(std::uint64_t{position_} + 1, std::memory_order_relaxed); }

  /// Returns the sequence word of the next slot. The word has the value next_value() once there is a segment.
  std::uint32_t& next_word() const { return ring_.slot(position_).sequence; }
  std::uint32_t next_value() const { return position_ + 1; }
  /// Returns the value that next_word() had when peek() last found nothing.
  std::uint32_t idle_word() const { return idle_word_; }
  /// Returns true if the next segment probably has payload in the arena. If so, callers should call peek()
  /// even if no segment has arrived yet, because peek() prefetches that payload.
  bool expects_two_lines() const { return block_ == kLineBytes; }

  /// Asks the writer to ring the doorbell after its next segment. Returns true if this is a new request.
  bool request_doorbell() { return segment_doorbell_.request(); }
  /// Returns true if the caller must now ring the writer's doorbell, because the writer waits for space that
  /// was freed.
  bool take_doorbell_request() {
    if (!doorbell_due_) [[likely]]
      return false;
    return std::exchange(doorbell_due_, false);
  }

  /// Returns true once the writer has broken the rules. From then on peek() finds nothing.
  bool broken() const { return broken_; }

  // --- what the two ends say about themselves ---
  /// Tells the writer that its ring has a reader, and which number the reader's doorbell has.
  void attach(std::uint64_t doorbell) {
    std::atomic_ref(ring_.control->reader_doorbell).store(doorbell, std::memory_order_relaxed);
    set_state(EndState::kAttached);
  }
  /// Tells the writer that its ring no longer has a reader.
  void close() { set_state(EndState::kClosed); }
  /// Returns true once the writer has closed its end. The segments that it has written can still be read.
  bool writer_closed() const {
    return std::atomic_ref(ring_.control->writer_state).load(std::memory_order_acquire) == EndState::kClosed;
  }

 private:
  /// The reader publishes `head` when it has taken this fraction (1 / kLagFraction) of the slots or of the
  /// arena.
  static constexpr std::uint32_t kLagFraction = 4;

  /// Reads the field exactly once. The compiler must not read it again, because the peer may change it
  /// between two reads.
  template <typename Integer>
  static Integer once(const Integer& field) {
    return static_cast<const volatile Integer&>(field);
  }

  /// Sets `payload` to the payload of a segment in the arena, and block_ to the size of its block. Returns
  /// false if this place or this length is impossible.
  bool find_in_arena(std::uint32_t offset, std::uint32_t length, const std::byte*& payload) {
    if (offset % kLineBytes != 0 || offset >= ring_.arena_bytes() || length > ring_.arena_bytes() - offset)
      return false;
    payload = ring_.arena + offset;
    block_ = (offset + block_bytes(length) - arena_place_) & ring_.arena_mask;  // skipped bytes included
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
  std::uint32_t published_ = kFirstNumber;  ///< the last published value of `head`
  std::uint32_t arena_place_ = 0;           ///< where the last block that was taken ends in the arena
  std::uint32_t arena_taken_ = 0;           ///< bytes of the arena taken since the last publish()
  std::uint32_t block_ = 0;  ///< bytes of the arena that belong to the segment that was shown last
  std::uint32_t idle_word_ = 0;
  bool shown_ = false;  ///< peek() has shown the segment at position_
  bool doorbell_due_ = false;
  bool broken_ = false;
  /// A copy of the slot that peek() has shown. The writer cannot change the copy.
  std::byte slot_copy_[Slot::kInlineBytes];
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
  // A message that is slightly too long for its slot occupies two cache lines. If the last message was that
  // long, the next one probably is, too. So the reader prefetches the line in the arena already now.
  if (expects_two_lines()) __builtin_prefetch(ring_.arena + arena_place_);
  // The slot still contains the segment of the previous lap, or zero in the first lap.
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
