// The writing end of a ring (layout.h). The memory may be of any kind, so a test can have both ends in one
// thread. The writer remembers the value of `head` that it has read last. To post a segment, it reads `head`
// again only if the ring seems full.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "shm/doorbell_word.h"
#include "shm/layout.h"
#include "shm/recall_word.h"
#include "wire/segment.h"

namespace cluster::shm {

class RingWriter {
 public:
  /// `memory` has geometry.total_bytes() bytes, all zero, is aligned to kLineBytes, and must outlive the
  /// writer.
  RingWriter(Bytes memory, const Geometry& geometry);

  std::size_t payload_max() const { return payload_max_; }

  /// Writes one segment. Returns false if there is no space for it now. payload.length must be equal to
  /// segment.length and at most payload_max().
  bool post(const wire::Segment& segment, const Gather& payload);

  /// Like post(), for a whole write.
  bool post_write(const wire::WriteHeader& header, const Gather& payload);
  /// Like post(), for a whole eager message. The message has header.length bytes of payload, at most
  /// payload_max().
  bool post_short(const wire::EagerHeader& header, const void* payload);

  /// Returns true if the caller must now ring the reader's doorbell, because the reader waits for a segment
  /// that was posted.
  bool take_doorbell_request() { return segment_doorbell_.take_request(); }
  /// Returns true if segments wait and the reader has taken none since the last call. Returns true only once
  /// until the reader takes segments again.
  bool newly_stalled();
  /// Asks the reader to ring the doorbell when it frees space. Returns true if this is a new request.
  bool request_doorbell() { return space_doorbell_.request(); }

  /// Tells the reader that no further segments follow.
  void close() {
    std::atomic_ref(ring_.control->writer_state).store(EndState::kClosed, std::memory_order_release);
  }
  /// Returns the EndState of the reader.
  std::uint32_t reader_state() const {
    return std::atomic_ref(ring_.control->reader_state).load(std::memory_order_acquire);
  }

  /// Returns the number of the reader's doorbell. It is valid once the state of the reader is not kUnknown.
  std::uint64_t reader_doorbell() const {
    return std::atomic_ref(ring_.control->reader_doorbell).load(std::memory_order_relaxed);
  }

  /// Blocks or unblocks the writer. A blocked writer accepts no segments, as if the ring were full. Callers
  /// must not unblock a writer that has written segments.
  void set_blocked(bool blocked) {
    head_ = blocked ? position_ - ring_.slot_count() : position_;
    blocked_ = blocked;
  }

  /// Returns true if the reader has returned all slots.
  bool drained() const;
  /// Returns true once the reader has written an impossible `head`. From then on the writer frees no space.
  bool broken() const { return broken_; }

  // --- Recall (shm/recall.h). The caller must call resume() even after a hold() that has returned false. ---
  std::uint32_t next() const { return position_; }
  std::uint32_t taken() {
    read_head();
    return taken_;
  }
  std::uint32_t capacity() const { return ring_.slot_count(); }
  /// Returns true if the reader has refused this segment, and clears the refusal. If the refusal stayed, a
  /// later segment would seem to be refused after the numbers have wrapped around.
  bool take_refusal(std::uint32_t number) {
    std::uint64_t refused = std::uint64_t{number} + 1;
    if (ring_.refusal(number).load(std::memory_order_relaxed) != refused) [[likely]]
      return false;
    return ring_.refusal(number).compare_exchange_strong(refused, 0, std::memory_order_relaxed);
  }
  bool hold();
  void resume() { recall_.resume(); }
  /// Returns the payload of the segment. Returns nothing if the reader has overwritten the fields that say
  /// where the payload is.
  ConstBytes payload(std::uint32_t number) const;
  void withdraw(std::uint32_t number);

 private:
  bool slot_free() {
    if (position_ - head_ < ring_.slot_count()) [[likely]]
      return true;
    read_head();
    return position_ - head_ < ring_.slot_count();
  }
  bool post_behind(std::size_t header_size, const Gather& payload);
  void publish(Slot& slot, std::size_t header_size, std::uint32_t length, std::uint32_t offset);
  bool reserve(std::uint32_t bytes, std::uint32_t& offset);
  bool arena_free(std::uint32_t bytes) const {
    return bytes <= ring_.arena_bytes() - (arena_end_ - arena_begin_);
  }
  void read_head();

  RingView ring_;
  DoorbellWord segment_doorbell_;
  DoorbellWord space_doorbell_;
  RecallWord recall_;
  std::size_t payload_max_;
  std::uint32_t position_ = kFirstNumber;  ///< number of the next segment to write
  /// The last `head` that this side has read. The reader has returned the slots of all earlier segments.
  std::uint32_t head_ = kFirstNumber;
  /// The reader has taken all segments before this one; `head` may be behind.
  std::uint32_t taken_ = kFirstNumber;
  // Positions in the arena. They count up modulo 2^32, and begin shortly before the wrap. The bytes from
  // arena_begin_ to arena_end_ are in use.
  std::uint32_t arena_begin_ = 0u - Geometry::kArenaMax;
  std::uint32_t arena_end_ = 0u - Geometry::kArenaMax;
  /// For each slot: value of arena_end_ after its segment was written.
  std::unique_ptr<std::uint32_t[]> arena_ends_;
  std::uint32_t stalled_head_ = kFirstNumber - 1;  ///< `head` at the last call of newly_stalled()
  bool stall_reported_ = false;  ///< true if newly_stalled() has returned true for this stall
  bool blocked_ = false;         ///< if true, head_ is not the position of the reader
  bool broken_ = false;
};

inline bool RingWriter::post(const wire::Segment& segment, const Gather& payload) {
  assert(payload.length == segment.length && payload.length <= payload_max_);
  if (!slot_free()) return false;
  return post_behind(wire::encode(segment, ring_.slot(position_).inline_bytes), payload);
}

inline bool RingWriter::post_write(const wire::WriteHeader& header, const Gather& payload) {
  assert(payload.length == header.length && payload.length <= payload_max_);
  if (!slot_free()) [[unlikely]]
    return false;
  header.write(ring_.slot(position_).inline_bytes);
  return post_behind(header.size(), payload);
}

/// Writes the payload of the next segment, whose header is already in its slot, and publishes the segment.
/// Returns false if the arena has no space.
inline bool RingWriter::post_behind(std::size_t header_size, const Gather& payload) {
  Slot& slot = ring_.slot(position_);
  const auto length = static_cast<std::uint32_t>(payload.length);
  std::uint32_t offset = Slot::kInline;
  if (header_size + length <= Slot::kInlineBytes) {
    gather_short(payload, slot.inline_bytes + header_size);
  } else {
    if (!reserve(block_bytes(length), offset)) return false;
    payload.copy_to(ring_.arena + offset);
  }
  publish(slot, header_size, length, offset);
  return true;
}

inline bool RingWriter::post_short(const wire::EagerHeader& header, const void* payload) {
  assert(header.length <= payload_max_);
  if (!slot_free()) [[unlikely]]
    return false;
  Slot& slot = ring_.slot(position_);
  std::uint32_t offset = Slot::kInline;
  std::byte* place = slot.inline_bytes + header.size();
  if (header.size() + header.length > Slot::kInlineBytes) {
    if (!reserve(block_bytes(header.length), offset)) [[unlikely]]
      return false;
    place = ring_.arena + offset;
  }
  header.write(slot.inline_bytes);
  copy_short(place, static_cast<const std::byte*>(payload), header.length);
  publish(slot, header.size(), header.length, offset);
  return true;
}

/// Makes the segment visible to the reader. Called after header and payload are written.
inline void RingWriter::publish(Slot& slot, std::size_t header_size, std::uint32_t length,
                                std::uint32_t offset) {
  slot.length = length;
  slot.offset = offset;
  slot.header_size = static_cast<std::uint8_t>(header_size);
  slot.withdrawn = 0;
  arena_ends_[position_ & ring_.slot_mask] = arena_end_;
  ++position_;
  std::atomic_ref(slot.sequence).store(position_, std::memory_order_release);
}

}  // namespace cluster::shm
