// The shared memory between two processes of one node, version kLayoutVersion.
//
//   control page | slots, 64 bytes each | arena | refusals, 8 bytes a slot
//
// One process writes segments (RingWriter), the other takes them (RingReader). The memory is a memfd that
// the writer created and sealed, so its size never changes under the reader.
//
// Slots. Segments are numbered; number n lies in slot n mod slots. A slot is one cache line and carries its
// own sequence word, written last (release) with n + 1: message and signal arrive in one line, and no tail
// index is written per message. The reader waits for exactly that value. Any other value, except that of the
// lap before, means that the peer broke the rules. Numbers wrap around after minutes of small messages, so
// they begin shortly before the wrap: every run exercises it. The encoded segment header (wire/segment.h)
// follows the 16 bytes of slot header, and the payload follows it if it fits.
//
// Arena. Longer payload lies in one piece in the arena, a ring of bytes of its own. Blocks begin at multiples
// of 64 bytes, so writer and reader do not share lines. On some processors (AMD Zen 4), string copies over
// certain distances (1 to 15 modulo 4096) are 15 times slower. Copies between the arena and a buffer of
// ordinary alignment avoid these distances. A block that would cross the end begins at the start instead; the
// skipped bytes belong to the block. Blocks are freed in the order of their slots. Only the writer knows
// where they end: the reader gives back only a number of slots.
//
// Giving back. The reader counts the slots that it has taken in `head`, which has a cache line to itself.
// Reading `head` costs the writer a cache miss, so the writer reads it only when the last known value says
// that the ring is full. The reader publishes
//   (1) when a quarter of the slots or a quarter of the arena has been taken but not published,
//   (2) when it looks and finds nothing, or the segment that it found last time.
// (If a reader takes the last segment and never looks again, the ring seems used. Progress loops do look
// until they find nothing.) So whenever the writer waits, the reader has segments to look at, or publishes
// everything at its next look. By (2) a writer that waits meets an empty arena sooner or later. In an empty
// arena, a block needs its own length and a skip of at most that length. So payload of up to half the arena
// never waits forever.
//
// Long messages are cut into pieces of payload_max, so that the writer copies one piece in while the reader
// copies the previous piece out. Both pieces then stay in near caches. Measured: pieces of 16 to 64 KiB are
// equally fast; longer pieces lose the overlap for messages of 64 KiB.
//
// Trust. Either side may be faulty or hostile. The reader copies a slot's fields once and checks them before
// use; the writer accepts only a head between the last one and what it wrote. Neither uses a pointer or an
// index from the memory unchecked. Payload may still change while the reader copies it: that harms only the
// sender's own message.
//
// Taking back. The writer may take back segments that the reader has not taken (recall_word.h): it marks
// their slots as withdrawn. The reader takes segments in batches, each between begin() and end(). At the end
// of each batch it writes the number of the next segment (`next`), since `head` may lag behind. Some segments
// ask for no answer. If the reader cannot execute such a segment, it notes the refusal in `refusals` before
// `head` passes the segment.
//
// Sleeping. Each side may ask the other to ring, by a word of its own (doorbell_word.h): the reader asks for
// the next segment, the writer for space. The reader's word has a cache line to itself: the writer keeps that
// line in its cache and looks at it after every segment. The writer's word lies beside `head`, which the
// reader writes anyway. Each end says in another word when it closes, and then rings.
//
// Memory is touched only as it is used: a pair that exchanges a few small messages costs two or three pages.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "wire/segment.h"

namespace cluster::shm {

/// Part of the name of listening sockets, so a process with another version finds no socket at all.
inline constexpr std::uint32_t kLayoutVersion = 4;

inline constexpr std::size_t kLineBytes = 64;

/// What an end says about itself. An end whose process has died says nothing more.
struct EndState {
  static constexpr std::uint32_t kUnknown = 0;
  static constexpr std::uint32_t kAttached = 1;  ///< the reader has mapped the ring
  static constexpr std::uint32_t kClosed = 2;
};

/// The first page. Each comment begins with the end that writes the field.
struct RingControl {
  alignas(kLineBytes) std::uint32_t head = 0;  ///< reader: number of the first segment not given back
  std::uint32_t space_doorbell = 0;            ///< writer: ring when `head` moves
  std::uint32_t reader_state = 0;              ///< reader: an EndState
  std::uint32_t unused = 0;
  std::uint64_t reader_doorbell = 0;  ///< reader: number of its doorbell, written before the state
  alignas(kLineBytes) std::uint32_t segment_doorbell = 0;  ///< reader: ring behind the next segment
  std::uint32_t held = 0;                                  ///< writer: it is taking segments back
  std::uint32_t writer_state = 0;                          ///< writer: an EndState
  alignas(kLineBytes) std::uint32_t taking = 0;            ///< reader: it is taking segments
  std::uint32_t next = 0;  ///< reader: number of the segment it takes next; valid between batches
  alignas(kLineBytes) std::byte reserved[4096 - 3 * kLineBytes] = {};
};
static_assert(sizeof(RingControl) == 4096);
static_assert(offsetof(RingControl, segment_doorbell) == kLineBytes &&
              offsetof(RingControl, taking) == 2 * kLineBytes &&
              offsetof(RingControl, reserved) == 3 * kLineBytes);

struct Slot {
  static constexpr std::size_t kInlineBytes = 48;
  /// In `offset`: the payload follows the segment header in `inline_bytes`.
  static constexpr std::uint32_t kInline = 0xffffffff;

  std::uint32_t sequence;    ///< n + 1 once segment n lies here; written last
  std::uint32_t length;      ///< of the payload, equal to the segment's
  std::uint32_t offset;      ///< of the payload in the arena, a multiple of kLineBytes; or kInline
  std::uint8_t header_size;  ///< of the encoded segment header in `inline_bytes`
  std::uint8_t withdrawn;    ///< 1: the writer has taken the segment back, and the segment has no effect
  std::uint8_t reserved[2];
  std::byte inline_bytes[kInlineBytes];
};
static_assert(sizeof(Slot) == kLineBytes);
static_assert(offsetof(Slot, sequence) == 0 && offsetof(Slot, inline_bytes) == 16);
static_assert(wire::kSegmentHeaderMax <= Slot::kInlineBytes, "a segment header always fits into its slot");
static_assert(std::atomic_ref<std::uint32_t>::is_always_lock_free);

/// The geometry of one ring. The writer chooses it, and the hello tells the reader.
struct Geometry {
  std::uint32_t slots = 0;        ///< power of two
  std::uint32_t arena_bytes = 0;  ///< power of two

  static constexpr std::uint32_t kSlotsMin = 64, kSlotsMax = 4096;
  static constexpr std::uint32_t kArenaMin = 64u << 10, kArenaMax = 64u << 20;
  static constexpr std::uint32_t kArenaBytesPerSlot = 1024;
  static constexpr std::uint32_t kPieceBytes = 32u << 10;

  /// Returns a geometry for about `ring_bytes` of payload, rounded up to a power of two within the limits.
  static Geometry for_payload(std::size_t ring_bytes) {
    const std::size_t wanted = std::clamp<std::size_t>(ring_bytes, kArenaMin, kArenaMax);
    const auto arena = static_cast<std::uint32_t>(std::bit_ceil(wanted));
    return {std::clamp(arena / kArenaBytesPerSlot, kSlotsMin, kSlotsMax), arena};
  }
  bool valid() const {
    return std::has_single_bit(slots) && slots >= kSlotsMin && slots <= kSlotsMax &&
           std::has_single_bit(arena_bytes) && arena_bytes >= kArenaMin && arena_bytes <= kArenaMax;
  }

  std::size_t slots_begin() const { return sizeof(RingControl); }
  std::size_t arena_begin() const { return slots_begin() + slots * sizeof(Slot); }
  std::size_t refusals_begin() const { return arena_begin() + arena_bytes; }
  /// The size of the shared memory: whole pages.
  std::size_t total_bytes() const {
    const std::size_t end = refusals_begin() + slots * sizeof(std::uint64_t);
    return (end + sizeof(RingControl) - 1) / sizeof(RingControl) * sizeof(RingControl);
  }
  /// Longest payload of one segment, bytes.
  std::size_t payload_max() const { return std::min(arena_bytes / 8, kPieceBytes); }

  friend bool operator==(const Geometry&, const Geometry&) = default;
};

/// The parts of a ring's memory, as either end sees them.
struct RingView {
  /// `memory`: geometry.total_bytes(), aligned to kLineBytes.
  RingView(Bytes memory, const Geometry& geometry)
      : slots(reinterpret_cast<Slot*>(memory.data() + geometry.slots_begin())),
        arena(memory.data() + geometry.arena_begin()),
        control(reinterpret_cast<RingControl*>(memory.data())),
        refusals(reinterpret_cast<std::uint64_t*>(memory.data() + geometry.refusals_begin())),
        slot_mask(geometry.slots - 1),
        arena_mask(geometry.arena_bytes - 1) {}

  Slot& slot(std::uint32_t number) const { return slots[number & slot_mask]; }
  /// 1 + the number of the last segment of this slot that was refused; 0: none.
  std::atomic_ref<std::uint64_t> refusal(std::uint32_t number) const {
    return std::atomic_ref(refusals[number & slot_mask]);
  }
  std::uint32_t slot_count() const { return slot_mask + 1; }
  std::uint32_t arena_bytes() const { return arena_mask + 1; }

  Slot* slots;
  std::byte* arena;
  RingControl* control;
  std::uint64_t* refusals;
  std::uint32_t slot_mask;
  std::uint32_t arena_mask;
};

/// The number of the first segment. Fresh memory is zero, so every slot must be used at least once before the
/// sequence reaches 0. The writer stores this number in `head`.
inline constexpr std::uint32_t kFirstNumber = 0u - 2 * Geometry::kSlotsMax;

/// Arena bytes that a payload occupies.
inline std::uint32_t block_bytes(std::uint32_t length) {
  return (length + (kLineBytes - 1)) & ~static_cast<std::uint32_t>(kLineBytes - 1);
}

}  // namespace cluster::shm
