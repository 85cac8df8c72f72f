// Segments: the messages of the protocol to its peer, packed one behind the other into a frame, or written
// one by one into a shared-memory ring. The same bytes on both carriers.
//
//   common: u8 kind | u8 flags | u16 detail | u32 length      payload bytes behind the fields
//   fields by kind, in this order, each present as the table in segment.cc says:
//           u32 id | u32 peer id | u64 offset | u64 total | u64 key | u64 tag | u64 data | u64 address
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/bytes.h"
#include "wire/endian.h"

namespace cluster::wire {

enum class SegmentKind : std::uint8_t {
  eager = 1,       ///< a whole message
  eager_first,     ///< the first part of a message of `total` bytes that needs several segments
  eager_next,      ///< its next part; parts of one message follow each other undisturbed
  announce,        ///< rendezvous: a message of `total` bytes waits as the sender's request `id`
  pull,            ///< send `total` bytes from `offset` of your request `id` to my `peer_id`
  bulk,            ///< bytes at `offset` for the receiver's request `peer_id`; any order
  done,            ///< the sender's request `id` is finished: everything wanted has arrived
  credit,          ///< the peer may charge up to `total` for eager messages since the session began
  close,           ///< the peer closes after everything is done: nothing more will come, and nothing is lost
  write,           ///< remote write of `total` bytes to `offset` of region `key`: its first or only part
  write_next,      ///< its next part; parts follow each other undisturbed
  write_announce,  ///< a large remote write: pull it from the sender's request `id`
  read,            ///< remote read: send `total` bytes from `offset` of region `key` as bulk to my
                   ///< `peer_id`, where they begin at offset `data`
  failed,          ///< the sender's request `id` failed: `total` says why
  read_failed,     ///< the same for a read; `peer_id` is the reader's
  placed,          ///< in place of bulk: `total` bytes already lie where the pull wants them (one node)
  atomic,   ///< do `detail` (wire/atomic.h) to the next part of `total` bytes from `offset` of region `key`
  fetched,  ///< the previous values at `offset` of a part of atomic `id`
  padding,  ///< without effect: fills a frame up to the wanted length
  // Groups (group/): `key` is the group, `id` one member's stream of messages, `offset` a sequence in it.
  group_join,    ///< the sender is a member; `total` says what it does there, `offset` orders its memberships
  group_start,   ///< the receiver is sent the stream from `offset` on
  group_status,  ///< all before `offset` has arrived, up to `total` may be sent; `peer_id`: age of the newest
  group_nak,     ///< `total` frames from `offset` on are missing
  group_ask,     ///< the stream ends at `offset` so far: report what has arrived
  group_repair,  ///< to one member: the body of frame `offset`, `total` bytes, from byte `peer_id` on
  group_leave,   ///< the sender has left the group; its stream ended at `offset`
  group_end,     ///< an answer: there is no such stream, or no member for it
};
inline constexpr std::uint8_t kSegmentKindLast = static_cast<std::uint8_t>(SegmentKind::group_end);
/// Returns true for the kinds of groups, which the engine's groups handle.
constexpr bool of_group(SegmentKind kind) { return kind >= SegmentKind::group_join; }

namespace segment_flag {
inline constexpr std::uint8_t kTagged = 1;   ///< `tag` is present; the message is a tagged one
inline constexpr std::uint8_t kData = 2;     ///< `data` (remote completion data) is present
inline constexpr std::uint8_t kConfirm = 4;  ///< the sender waits for `done` for its request `id`
inline constexpr std::uint8_t kAddress =
    8;  ///< `address` is present: an announcement's bytes lie there, a pull's belong there
inline constexpr std::uint8_t kMore =
    16;  ///< its operation goes on; of a group_status: frames come by multicast
inline constexpr std::uint8_t kContinues =
    32;  ///< its operation began with the segment of this kind before it
inline constexpr std::uint8_t kUnanswered =
    64;  ///< a whole write whose sender sees by itself when it has been taken (shm/recall.h)
inline constexpr std::uint8_t kCollective = 128;  ///< the message is part of a collective operation
inline constexpr std::uint8_t kAll = 255;
}  // namespace segment_flag

/// A segment in host byte order. Fields that its kind does not have are zero.
struct Segment {
  SegmentKind kind = SegmentKind::eager;
  std::uint8_t flags = 0;
  std::uint16_t detail = 0;  ///< atomics: what to do
  std::uint32_t length = 0;
  std::uint32_t id = 0;
  std::uint32_t peer_id = 0;
  std::uint64_t offset = 0;
  std::uint64_t total = 0;
  std::uint64_t key = 0;
  std::uint64_t tag = 0;
  std::uint64_t data = 0;
  std::uint64_t address = 0;  ///< in the memory of the sender of the segment; valid on its own node only

  bool tagged() const { return (flags & segment_flag::kTagged) != 0; }
  bool has_data() const { return (flags & segment_flag::kData) != 0; }
  bool confirm() const { return (flags & segment_flag::kConfirm) != 0; }
  bool more() const { return (flags & segment_flag::kMore) != 0; }
  bool unanswered() const { return (flags & segment_flag::kUnanswered) != 0; }
  bool continues() const { return (flags & segment_flag::kContinues) != 0; }
  bool collective() const { return (flags & segment_flag::kCollective) != 0; }
};

/// Most bytes that encode() ever writes. No kind has all the fields.
inline constexpr std::size_t kSegmentHeaderMax = 8 + 4 + 4 + 8 + 8 + 8 + 8;

/// Returns true for kinds whose order among themselves matters: for matching, and for the order of remote
/// reads and writes. The receiver processes other kinds (answers, pulls, bulk, credit, close) as they arrive.
/// A `done` may travel in a frame of ordered segments, and then waits with them.
bool ordered(SegmentKind kind);
/// Returns true if the sender waits for a `done` or `failed`, which the receiver sends as soon as it has
/// executed the segment.
inline bool awaits_done(SegmentKind kind) {
  return kind == SegmentKind::write || kind == SegmentKind::write_next || kind == SegmentKind::atomic;
}

/// Returns true if these bytes begin like a write that needs no answer.
inline bool seems_unanswered(const std::byte* encoded) {
  return encoded[0] == std::byte{static_cast<std::uint8_t>(SegmentKind::write)} &&
         encoded[1] == std::byte{segment_flag::kUnanswered};
}

std::size_t encoded_size(const Segment& segment);
/// The position of `offset` in the header of a bulk segment. The headers of a run differ only there.
inline constexpr std::size_t kBulkOffsetAt = 12;
/// Writes the header (not the payload) and returns encoded_size().
std::size_t encode(const Segment& segment, std::byte* out);
/// Whether decode() reads an address in the sender's memory. Such an address has a meaning only on the
/// sender's node, so callers choose `dropped` for segments from other nodes.
enum class SenderAddresses : bool { kept, dropped };
/// Reads one header. Returns its size, or 0 if the bytes are invalid. The payload need not be in `in` (in
/// shared memory it lies elsewhere), so the caller compares `length` with what it has.
std::size_t decode(ConstBytes in, Segment& out, SenderAddresses addresses = SenderAddresses::kept);

/// The header of the most frequent segment: a whole eager message that is not confirmed. Both ends of a ring
/// in shared memory write and read it in one go. Its bytes are those of encode() and decode(). The first
/// eight bytes are one word:
///
///   kind | flags << 8 | detail (0) << 16 | length << 32
struct EagerHeader {
  std::uint32_t length = 0;
  bool tagged = false;
  bool has_data = false;
  std::uint64_t tag = 0;
  std::uint64_t data = 0;

  /// Bytes that write() writes.
  constexpr std::size_t size() const {
    return sizeof(std::uint64_t) * (std::size_t{1} + (tagged ? 1 : 0) + (has_data ? 1 : 0));
  }
  void write(std::byte* at) const {
    const std::uint64_t flags = (tagged ? segment_flag::kTagged : 0u) | (has_data ? segment_flag::kData : 0u);
    put(at, kKind | flags << kFlagsShift | std::uint64_t{length} << kLengthShift);
    if (tagged) put(at, tag);
    if (has_data) put(at, data);
  }
  /// Reads a header. Returns false if a segment of another shape begins there. Reads at most three words,
  /// each once.
  bool read(const std::byte* at) {
    const std::uint64_t word = get(at);
    if ((word & ~kVariable) != kKind) return false;
    length = static_cast<std::uint32_t>(word >> kLengthShift);
    tagged = (word >> kFlagsShift & segment_flag::kTagged) != 0;
    has_data = (word >> kFlagsShift & segment_flag::kData) != 0;
    tag = tagged ? get(at) : 0;
    data = has_data ? get(at) : 0;
    return true;
  }

 private:
  static constexpr unsigned kFlagsShift = 8, kLengthShift = 32;
  static constexpr std::uint64_t kKind = static_cast<std::uint64_t>(SegmentKind::eager);
  /// The bits in which headers of this shape differ.
  static constexpr std::uint64_t kVariable =
      std::uint64_t{segment_flag::kTagged | segment_flag::kData} << kFlagsShift | ~std::uint64_t{0}
                                                                                      << kLengthShift;

  static void put(std::byte*& at, Le64 value) {
    std::memcpy(at, &value, sizeof value);
    at += sizeof value;
  }
  static std::uint64_t get(const std::byte*& at) {
    const std::uint64_t value = *reinterpret_cast<const volatile std::uint64_t*>(at);
    at += sizeof value;
    return std::bit_cast<Le64>(value);
  }
};

}  // namespace cluster::wire
