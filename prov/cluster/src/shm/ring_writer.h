// The writing end of a ring (layout.h), over any memory: a test may hold both ends in one thread. The writer
// remembers how far the reader was last seen, and looks again only when the ring seems full.
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
  /// `memory`: geometry.total_bytes(), zero, aligned to kLineBytes, outlives the writer.
  RingWriter(Bytes memory, const Geometry& geometry);

  std::size_t payload_max() const { return payload_max_; }

  /// Writes one segment. Returns false if there is no space for it now. payload.length must be segment.length
  /// and at most payload_max().
  bool post(const wire::Segment& segment, const Gather& payload);

  /// As post(), for a whole eager message of header.length bytes, at most payload_max().
  bool post_short(const wire::EagerHeader& header, const void* payload);

  /// True if the reader's doorbell must be rung now, because of what was posted.
  bool take_doorbell_request() { return segment_doorbell_.take_request(); }
  /// True, once, if segments wait and the reader has taken none since the last call.
  bool newly_stalled();
  /// Asks the reader to ring when it frees space. Returns true if the reader had not been asked yet.
  bool request_doorbell() { return space_doorbell_.request(); }

  /// Tells the reader that nothing more comes.
  void close() {
    std::atomic_ref(ring_.control->writer_state).store(EndState::kClosed, std::memory_order_release);
  }
  /// What the reader says about itself: an EndState.
  std::uint32_t reader_state() const {
    return std::atomic_ref(ring_.control->reader_state).load(std::memory_order_acquire);
  }

  /// The number of the reader's doorbell; valid once the reader has a state.
  std::uint64_t reader_doorbell() const {
    return std::atomic_ref(ring_.control->reader_doorbell).load(std::memory_order_relaxed);
  }

  /// A blocked writer takes no segments: the ring seems full. Call this only before anything is written.
  void set_blocked(bool blocked) {
    head_ = blocked ? position_ - ring_.slot_count() : position_;
    blocked_ = blocked;
  }

  /// True if the reader has given everything back.
  bool drained() const;
  /// True once the reader's head was impossible; the ring then fills up and stays full.
  bool broken() const { return broken_; }

  // --- taking back (shm/recall.h); call resume() even after a hold() that failed ---
  std::uint32_t next() const { return position_; }
  std::uint32_t taken() {
    read_head();
    return taken_;
  }
  std::uint32_t capacity() const { return ring_.slot_count(); }
  /// Returns true once only: when the number comes again, the refusal must be gone.
  bool take_refusal(std::uint32_t number) {
    std::uint64_t refused = std::uint64_t{number} + 1;
    if (ring_.refusal(number).load(std::memory_order_relaxed) != refused) [[likely]]
      return false;
    return ring_.refusal(number).compare_exchange_strong(refused, 0, std::memory_order_relaxed);
  }
  bool hold();
  void resume() { recall_.resume(); }
  /// Returns the payload of the segment. Empty if the reader has overwritten the fields that say where it
  /// lies.
  ConstBytes payload(std::uint32_t number) const;
  void withdraw(std::uint32_t number);

 private:
  bool slot_free() {
    if (position_ - head_ < ring_.slot_count()) [[likely]]
      return true;
    read_head();
    return position_ - head_ < ring_.slot_count();
  }
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
  std::uint32_t position_ = kFirstNumber;  ///< number of the next segment
  std::uint32_t head_ = kFirstNumber;      ///< the reader has given back the segments before, as last seen
  std::uint32_t taken_ = kFirstNumber;     ///< it has taken the segments before; the head may lag
  // Places in the arena count up modulo 2^32, from shortly before the wrap. The bytes between the two are in
  // use.
  std::uint32_t arena_begin_ = 0u - Geometry::kArenaMax;
  std::uint32_t arena_end_ = 0u - Geometry::kArenaMax;
  std::unique_ptr<std::uint32_t[]> arena_ends_;    ///< by slot: arena_end_ after the segment in it
  std::uint32_t stalled_head_ = kFirstNumber - 1;  ///< the reader's head at the last call of newly_stalled()
  bool stall_reported_ = false;                    ///< newly_stalled() has returned true for this stall
  bool blocked_ = false;                           ///< then head_ is not the position of the reader
  bool broken_ = false;
};

inline bool RingWriter::post(const wire::Segment& segment, const Gather& payload) {
  assert(payload.length == segment.length && payload.length <= payload_max_);
  if (!slot_free()) return false;
  Slot& slot = ring_.slot(position_);
  const auto length = static_cast<std::uint32_t>(payload.length);
  const std::size_t header_size = wire::encode(segment, slot.inline_bytes);
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

/// Shows the segment to the reader, once header and payload are written.
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
