// The shared memory between two processes of one node, version kLayoutVersion.
//
//   control page | slots, 64 bytes each | arena | refusals, 8 bytes a slot
//
// One process writes segments (RingWriter), and the other takes them (RingReader). The memory is a memfd that
// the writer has created and sealed, so its size cannot change while the reader uses it.
//
// Slots. Segments are numbered, and segment n lies in slot n mod slots. A slot is one cache line and contains
// a sequence word. The writer writes this word last (release), with the value n + 1. So the segment and the
// sign that it is complete arrive in one cache line, and the writer need not update a tail index. The reader
// waits for exactly this value. Until then the word has the value of the previous lap, or 0 in the first lap.
// Any other value means that the writer has broken the rules. Numbers wrap around after minutes of small
// messages. The first number lies shortly before the wrap, so that tests pass the wrap, too. The slot header
// of 16 bytes is followed by the encoded segment header (wire/segment.h), then by the payload if it fits.
//
// Arena. Longer payload lies in one piece in the arena, which is a ring of bytes. Each payload occupies a
// block. Blocks begin at multiples of 64 bytes, so writer and reader do not use the same cache line at the
// same time. This alignment also avoids slow copies. On some processors (AMD Zen 4), a string copy is 15
// times slower if source and target are 1 to 15 bytes apart modulo 4096. A block that would cross the end of
// the arena begins at the start of the arena instead, and the skipped bytes belong to the block. Blocks are
// freed in the order of their slots. The writer remembers where the block of each slot ends, because the
// reader says only how many slots it returns.
//
// Return of slots. `head` is the number of the first segment whose slot the reader has not returned. To read
// `head` usually costs the writer a cache miss. So the writer remembers the value that it has read last. It
// reads `head` again only if this value leaves no space for the next segment. The reader publishes `head`
//   (1) when a quarter of the slots or a quarter of the arena has been taken but not published,
//   (2) when it polls and finds no segment, or only the one that it has already seen.
// (If a reader takes the last segment and never polls again, the ring seems to be in use. But progress loops
// poll until they find nothing.) So while the writer waits, the reader still has segments to take, or it
// publishes everything when it polls again. Because of (2), the arena of a waiting writer becomes empty
// sooner or later. In an empty arena, a block occupies at most twice the length of its payload, because fewer
// bytes are skipped than the payload contains. So a payload of up to half the arena never waits forever.
//
// Long messages are cut into pieces of payload_max bytes. So the writer copies one piece into the arena while
// the reader copies the previous piece out of it, and both pieces stay in fast caches. In measurements,
// pieces of 16 to 64 KiB are equally fast. With longer pieces, the two copies of a message of 64 KiB no
// longer overlap.
//
// Trust. Either side may be faulty or hostile. The reader copies the fields of a slot once, and checks the
// copy before it uses it. The writer accepts a value of `head` only if it lies between the previous value and
// the number of the next segment to write. Neither side uses a pointer or an index from the memory without a
// check. The payload may change while the reader copies it, but that harms only the sender's own message.
//
// Recall. The writer may take back segments that the reader has not taken (recall_word.h). To do this, the
// writer marks their slots as withdrawn. The reader takes segments in batches. At the end of each batch, the
// reader writes the number of the next segment to `next`. The writer learns from `next` which segments were
// taken; `head` may be behind. Some segments get no answer. If the reader cannot execute such a segment, the
// reader writes a refusal to `refusals` before it returns the slot of the segment.
//
// Sleep. Before one side sleeps, it may ask the other side to ring the sleeper's doorbell. Each side has a
// word for this request (doorbell_word.h). A sleeping reader waits for the next segment, a sleeping writer
// waits for space. The reader's word shares its cache line only with words of the writer, and both sides
// write to this line rarely. So the writer, which reads the word after every segment, keeps the line in its
// cache. The writer's word is in the line of `head`, which the reader writes anyway. An end that closes
// writes its state (EndState), and then rings the doorbell of the other end.
//
// Pages that are never used take no memory. A ring that carries only a few small messages needs two or three
// pages.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "wire/segment.h"

namespace cluster::shm {

/// The version is part of the names of listening sockets, so a process with another version finds no socket.
inline constexpr std::uint32_t kLayoutVersion = 4;

inline constexpr std::size_t kLineBytes = 64;

/// What an end says about itself. If its process has died, the state no longer changes.
struct EndState {
  static constexpr std::uint32_t kUnknown = 0;
  static constexpr std::uint32_t kAttached = 1;  ///< the reader has mapped the ring
  static constexpr std::uint32_t kClosed = 2;
};

/// The first page. Each comment begins with the name of the end that writes the field. (The other end
/// clears a request for a doorbell.)
struct RingControl {
  /// Reader: number of the first segment whose slot is not returned.
  alignas(kLineBytes) std::uint32_t head = 0;
  std::uint32_t space_doorbell = 0;  ///< writer: requests its doorbell when `head` moves
  std::uint32_t reader_state = 0;    ///< reader: an EndState
  std::uint32_t unused = 0;
  std::uint64_t reader_doorbell = 0;  ///< reader: number of its doorbell, written before the state
  alignas(kLineBytes) std::uint32_t segment_doorbell =
      0;                                         ///< reader: requests its doorbell after the next segment
  std::uint32_t held = 0;                        ///< writer: says that it is taking segments back
  std::uint32_t writer_state = 0;                ///< writer: an EndState
  alignas(kLineBytes) std::uint32_t taking = 0;  ///< reader: says that it is taking segments
  std::uint32_t next = 0;  ///< reader: number of the next segment that it takes; valid between batches
  alignas(kLineBytes) std::byte reserved[4096 - 3 * kLineBytes] = {};
};
static_assert(sizeof(RingControl) == 4096);
static_assert(offsetof(RingControl, segment_doorbell) == kLineBytes &&
              offsetof(RingControl, taking) == 2 * kLineBytes &&
              offsetof(RingControl, reserved) == 3 * kLineBytes);

struct Slot {
  static constexpr std::size_t kInlineBytes = 48;
  /// Value of `offset` if the payload follows the segment header in `inline_bytes`.
  static constexpr std::uint32_t kInline = 0xffffffff;

  std::uint32_t sequence;    ///< n + 1 once segment n lies here; written last
  std::uint32_t length;      ///< bytes of the payload, as in the segment header
  std::uint32_t offset;      ///< where the payload begins in the arena, a multiple of kLineBytes; or kInline
  std::uint8_t header_size;  ///< bytes of the encoded segment header in `inline_bytes`
  std::uint8_t withdrawn;    ///< 1 if the writer has taken the segment back, so that it has no effect
  std::uint8_t reserved[2];
  std::byte inline_bytes[kInlineBytes];
};
static_assert(sizeof(Slot) == kLineBytes);
static_assert(offsetof(Slot, sequence) == 0 && offsetof(Slot, inline_bytes) == 16);
static_assert(wire::kSegmentHeaderMax <= Slot::kInlineBytes, "a segment header always fits into its slot");
static_assert(std::atomic_ref<std::uint32_t>::is_always_lock_free);

/// The geometry of one ring. The writer chooses it, and sends it to the reader in the hello.
struct Geometry {
  std::uint32_t slots = 0;        ///< power of two
  std::uint32_t arena_bytes = 0;  ///< power of two

  static constexpr std::uint32_t kSlotsMin = 64, kSlotsMax = 4096;
  static constexpr std::uint32_t kArenaMin = 64u << 10, kArenaMax = 64u << 20;
  static constexpr std::uint32_t kArenaBytesPerSlot = 1024;
  static constexpr std::uint32_t kPieceBytes = 32u << 10;

  /// Returns a geometry for about `ring_bytes` bytes of payload. Rounds the size up to a power of two within
  /// the limits.
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
  /// Returns the size of the shared memory in bytes, rounded up to whole pages.
  std::size_t total_bytes() const {
    const std::size_t end = refusals_begin() + slots * sizeof(std::uint64_t);
    return (end + sizeof(RingControl) - 1) / sizeof(RingControl) * sizeof(RingControl);
  }
  /// Returns the maximum length of the payload of one segment.
  std::size_t payload_max() const { return std::min(arena_bytes / 8, kPieceBytes); }

  friend bool operator==(const Geometry&, const Geometry&) = default;
};

/// The parts of a ring's memory, as either end sees them.
struct RingView {
  /// `memory`: geometry.total_bytes() bytes, aligned to kLineBytes.
  RingView(Bytes memory, const Geometry& geometry)
      : slots(reinterpret_cast<Slot*>(memory.data() + geometry.slots_begin())),
        arena(memory.data() + geometry.arena_begin()),
        control(reinterpret_cast<RingControl*>(memory.data())),
        refusals(reinterpret_cast<std::uint64_t*>(memory.data() + geometry.refusals_begin())),
        slot_mask(geometry.slots - 1),
        arena_mask(geometry.arena_bytes - 1) {}

  Slot& slot(std::uint32_t number) const { return slots[number & slot_mask]; }
  /// Returns the refusal word of the segment's slot: 1 + the number of the last segment in this slot that was
  /// refused, or 0.
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

/// The number of the first segment, and the initial value of `head`. It lies at least two laps before the
/// wrap. So when the wrap gives a segment the sequence word 0, every slot has been used, and none still
/// contains the 0 of new memory.
inline constexpr std::uint32_t kFirstNumber = 0u - 2 * Geometry::kSlotsMax;

/// Returns how many bytes of the arena a payload of `length` bytes occupies.
inline std::uint32_t block_bytes(std::uint32_t length) {
  return (length + (kLineBytes - 1)) & ~static_cast<std::uint32_t>(kLineBytes - 1);
}

}  // namespace cluster::shm
