// The writing end of a ring (layout.h), over any memory: a test may hold both ends in one thread.
// It remembers how far the reader was last seen and looks again only when the ring seems full.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "shm/doorbell_word.h"
#include "shm/layout.h"
#include "wire/segment.h"

namespace cluster::shm {

class RingWriter {
 public:
  /// `memory`: geometry.total_bytes(), zero, aligned to kLineBytes, outlives the writer.
  RingWriter(Bytes memory, const Geometry& geometry);

  std::size_t payload_max() const { return payload_max_; }

  /// Writes one segment; false if there is no room for it now. payload.length must be segment.length
  /// and at most payload_max().
  bool post(const wire::Segment& segment, const Gather& payload);

  /// True if the reader has to be told, now, of what was posted.
  bool take_doorbell_due() { return segment_doorbell_.take_if_requested(); }
  /// True, once, if there is something to take and the reader has taken nothing since the last call.
  bool newly_stalled();
  /// Asks the reader to knock when it gives something back; true if it had not been asked.
  bool request_doorbell() { return space_doorbell_.request_doorbell(); }

  /// True if the reader has given everything back.
  bool drained() const;
  /// True once the reader's head made no sense; the ring then fills up and stays full.
  bool broken() const { return broken_; }

 private:
  bool slot_free();
  bool reserve(std::uint32_t bytes, std::uint32_t& offset);
  bool arena_free(std::uint32_t bytes) const { return bytes <= arena_bytes_ - (arena_end_ - arena_begin_); }
  void read_head();

  Slot* slots_;
  Control* control_;
  std::byte* arena_;
  DoorbellWord segment_doorbell_;
  DoorbellWord space_doorbell_;
  std::size_t payload_max_;
  std::uint32_t slot_count_;
  std::uint32_t arena_bytes_;
  std::uint32_t position_ = kFirstNumber;  ///< number of the next segment
  std::uint32_t head_ = kFirstNumber;      ///< those before are known to be given back
  // Places in the arena count on without end (mod 2^32, beginning shortly before the wrap); what lies
  // between the two is in use.
  std::uint32_t arena_begin_ = 0u - Geometry::kArenaMax;
  std::uint32_t arena_end_ = 0u - Geometry::kArenaMax;
  std::unique_ptr<std::uint32_t[]> arena_ends_;    ///< by slot: arena_end_ after the segment in it
  std::uint32_t stalled_head_ = kFirstNumber - 1;  ///< where the reader's head was at the last call
  bool stall_reported_ = false;                    ///< and newly_stalled() has said so
  bool broken_ = false;
};

}  // namespace cluster::shm
