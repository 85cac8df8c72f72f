// Segments are the messages that the protocol exchanges with its peer. They are packed one after the other
// into a frame, or written one by one into a shared-memory ring. Their headers have the same bytes in both
// cases.
//
//   common: u8 kind | u8 flags | u16 detail | u32 length      the payload follows the fields
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

/// In the descriptions, "I" means the sender of the segment, and "you" means its receiver.
enum class SegmentKind : std::uint8_t {
  eager = 1,       ///< a whole message
  eager_first,     ///< the first part of a message of `total` bytes that needs several segments
  eager_next,      ///< the next part of that message; no other message comes between the parts
  announce,        ///< rendezvous: a message of `total` bytes waits in my request `id`
  pull,            ///< send `total` bytes from `offset` of your request `id` to my `peer_id`
  bulk,            ///< bytes at `offset` for your request `peer_id`, in any order
  done,            ///< your request `id` is finished: it is executed, or all wanted bytes have arrived
  credit,          ///< `total` is the limit for your charges since the session began (protocol/channel.h)
  close,           ///< I close in an orderly way: I send nothing more, and nothing is lost
  write,           ///< the first or only part of a remote write of `total` bytes to `offset` of region `key`
  write_next,      ///< the next part of that write; nothing comes between the parts
  write_announce,  ///< a large remote write: pull it from my request `id`
  read,            ///< remote read: send `total` bytes from `offset` of region `key` as bulk to my
                   ///< `peer_id`, where they begin at offset `data`
  failed,          ///< your request `id` failed: `total` says why
  read_failed,     ///< your read request `peer_id` failed: `total` says why
  placed,  ///< instead of bulk, on one node: I have written `total` bytes to where the pull wants them
  /// Execute `detail` (wire/atomic.h) on the next part of `total` bytes from `offset` of region `key`.
  atomic,
  fetched,  ///< the previous values of a part of your atomic `id`, from `offset` on
  padding,  ///< has no effect; fills a frame up to the wanted length
  // Groups (group/): `key` is the group, `id` one member's stream of messages, `offset` a sequence in it.
  group_join,   ///< I am a member; `total` says in what role; `offset` orders my memberships
  group_start,  ///< you get my stream from `offset` on
  /// Frames before `offset` have arrived; `total`: limit for sending; `peer_id`: age of the newest frame.
  group_status,
  group_nak,     ///< `total` frames from `offset` on are missing
  group_ask,     ///< my stream ends at `offset` so far; report what has arrived
  group_repair,  ///< to one member: body of frame `offset`, from byte `peer_id` on; `total`: its length
  group_leave,   ///< I have left the group; my stream ended at `offset`
  group_end,     ///< an answer: there is no such stream or member
  // Reads by RDMA devices (carrier/device_reads.h), only between peers with feature::kDeviceReads.
  expose,  ///< let my device read `total` bytes from `offset` of your request `id` for my `peer_id`
  /// The answer to an expose: the bytes for your `peer_id` lie at address `offset` with key `key`. If `total`
  /// is 0, your device cannot read them. `data`: their CRC32C, if your queue_pair asks for it. For a remote
  /// read, `id` is the grant, which device_over ends.
  exposed,
  /// My queue pair for you is `id` (0: I have closed it), and I know your queue pair `peer_id` (0: none).
  /// `offset` and `total` are my GID, `key` a sequence number, the code of my MTU, and what my device needs.
  queue_pair,
  /// Remote read: let my device read `total` bytes from `offset` of region `key` for my `peer_id`.
  expose_region,
  /// My device reads nothing more under your grant `id`. It has read `total` bytes.
  device_over,
  /// Instead of the queue pair number `peer_id` (from 0) of my opening, I now have the queue pair `id`, at
  /// the same GID.
  new_queue_pair,
};
inline constexpr std::uint8_t kSegmentKindLast = static_cast<std::uint8_t>(SegmentKind::new_queue_pair);
/// Returns true for the kinds that belong to groups. The engine's groups process them.
constexpr bool of_group(SegmentKind kind) {
  return kind >= SegmentKind::group_join && kind <= SegmentKind::group_end;
}

namespace segment_flag {
inline constexpr std::uint8_t kTagged = 1;   ///< `tag` is present; the message is tagged
inline constexpr std::uint8_t kData = 2;     ///< `data` (remote completion data) is present
inline constexpr std::uint8_t kConfirm = 4;  ///< the sender waits for `done` for its request `id`
inline constexpr std::uint8_t kAddress =
    8;  ///< `address` is present: where an announced message lies, or where the bytes of a pull belong
inline constexpr std::uint8_t kMore =
    16;  ///< the operation continues; in a group_status: frames arrive by multicast
inline constexpr std::uint8_t kContinues =
    32;  ///< a further range of the write to which the previous range belongs
inline constexpr std::uint8_t kUnanswered =
    64;  ///< a whole write; the sender itself sees when the write is executed (shm/recall.h)
inline constexpr std::uint8_t kInternal = 128;  ///< no receive of the application matches the message
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
  std::uint64_t address = 0;  ///< see segment_flag::kAddress; valid only on the sender's node

  bool tagged() const { return (flags & segment_flag::kTagged) != 0; }
  bool has_data() const { return (flags & segment_flag::kData) != 0; }
  bool confirm() const { return (flags & segment_flag::kConfirm) != 0; }
  bool more() const { return (flags & segment_flag::kMore) != 0; }
  bool unanswered() const { return (flags & segment_flag::kUnanswered) != 0; }
  bool continues() const { return (flags & segment_flag::kContinues) != 0; }
  bool internal() const { return (flags & segment_flag::kInternal) != 0; }
};

/// encode() writes at most this number of bytes. No kind has all fields.
inline constexpr std::size_t kSegmentHeaderMax = 8 + 4 + 4 + 8 + 8 + 8 + 8;

/// Returns true for kinds that the receiver must process in the order of posting. Message matching and the
/// effects of remote accesses depend on this order. The receiver processes other kinds, for example answers,
/// pulls, bulk and credit, as they arrive. But a `done` in a frame of ordered segments waits with these
/// segments.
bool ordered(SegmentKind kind);
/// Returns true for the kinds that the receiver answers with `done` or `failed` as soon as it has executed
/// the segment.
inline bool awaits_done(SegmentKind kind) {
  return kind == SegmentKind::write || kind == SegmentKind::write_next || kind == SegmentKind::atomic;
}

/// Returns true if the encoded segment begins like a write that needs no answer.
inline bool seems_unanswered(const std::byte* encoded) {
  return encoded[0] == std::byte{static_cast<std::uint8_t>(SegmentKind::write)} &&
         encoded[1] == std::byte{segment_flag::kUnanswered};
}

std::size_t encoded_size(const Segment& segment);
/// The position of `offset` in the header of a bulk segment. The headers in a run differ only in this field.
inline constexpr std::size_t kBulkOffsetAt = 12;
/// Writes the header (not the payload) and returns encoded_size().
std::size_t encode(const Segment& segment, std::byte* out);
/// Says whether decode() keeps the field `address`, which points into the sender's memory. The address is
/// valid only on the sender's node, so callers choose `dropped` for segments from other nodes.
enum class SenderAddresses : bool { kept, dropped };
/// Reads one header. Returns its size, or 0 if the bytes are invalid. The payload need not be in `in`,
/// because in shared memory it is elsewhere. So the caller must compare `length` with the size of the
/// payload.
std::size_t decode(ConstBytes in, Segment& out, SenderAddresses addresses = SenderAddresses::kept);

/// The header of the most frequent segment: a whole eager message that is not confirmed. The fast lane
/// (shm/fast_lane.h) and the frame lane (reliability/frame_lane.h) write and read this header with a few
/// instructions. The bytes are those that encode() writes. The first eight bytes are one word:
///
///   kind | flags << 8 | detail (0) << 16 | length << 32
struct EagerHeader {
  std::uint32_t length = 0;
  bool tagged = false;
  bool has_data = false;
  std::uint64_t tag = 0;
  std::uint64_t data = 0;

  /// Returns the number of bytes that write() writes.
  constexpr std::size_t size() const {
    return sizeof(std::uint64_t) * (std::size_t{1} + (tagged ? 1 : 0) + (has_data ? 1 : 0));
  }
  /// Returns size() of a header whose second byte is `flags`.
  static std::size_t size_with(std::byte flags) {
    const auto bits = static_cast<unsigned>(flags);
    return sizeof(std::uint64_t) * (std::size_t{1} + ((bits & segment_flag::kTagged) != 0 ? 1 : 0) +
                                    ((bits & segment_flag::kData) != 0 ? 1 : 0));
  }
  void write(std::byte* at) const {
    const std::uint64_t flags = (tagged ? segment_flag::kTagged : 0u) | (has_data ? segment_flag::kData : 0u);
    put(at, kKind | flags << kFlagsShift | std::uint64_t{length} << kLengthShift);
    if (tagged) put(at, tag);
    if (has_data) put(at, data);
  }
  /// Reads a header. Returns false if the bytes are not such a header. Reads at most three words, and each
  /// word once.
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
  /// The bits in which EagerHeaders differ.
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

/// The header of a whole remote write without remote completion data. As with EagerHeader, a few instructions
/// write or read it, and its bytes are those that encode() writes.
struct WriteHeader {
  std::uint32_t length = 0;
  std::uint32_t id = 0;       ///< the sender's request, which the answer names
  std::uint64_t address = 0;  ///< Segment::offset
  std::uint64_t key = 0;
  bool unanswered = false;  ///< see segment_flag::kUnanswered

  static constexpr std::size_t kSize = 36;

  static constexpr std::size_t size() { return kSize; }
  void write(std::byte* at) const {
    const std::uint64_t flags = unanswered ? std::uint64_t{segment_flag::kUnanswered} << 8 : 0;
    put<Le64>(at, kKind | flags | std::uint64_t{length} << 32);
    put<Le32>(at + 8, id);
    put<Le64>(at + 12, address);
    put<Le64>(at + 20, length);
    put<Le64>(at + 28, key);
  }
  /// Reads a header of size() bytes. Returns false if it is not the header of a whole write that has to be
  /// answered.
  bool read(const std::byte* at) {
    const std::uint64_t word = get<Le64>(at);
    length = static_cast<std::uint32_t>(word >> 32);
    if (static_cast<std::uint32_t>(word) != kKind || get<Le64>(at + 20) != length) return false;
    id = get<Le32>(at + 8);
    address = get<Le64>(at + 12);
    key = get<Le64>(at + 28);
    unanswered = false;
    return true;
  }

 private:
  static constexpr std::uint32_t kKind = static_cast<std::uint32_t>(SegmentKind::write);

  template <typename Field>
  static void put(std::byte* at, Field value) {
    std::memcpy(at, &value, sizeof value);
  }
  template <typename Field>
  static Field get(const std::byte* at) {
    Field value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
};

/// The header of a `done`, the answer to a write. Its bytes are those that encode() writes.
struct AnswerHeader {
  std::uint32_t id = 0;  ///< the request that is finished

  static constexpr std::size_t kSize = 12;

  static constexpr std::size_t size() { return kSize; }
  void write(std::byte* at) const {
    const Le64 word = kKind;
    const Le32 request = id;
    std::memcpy(at, &word, sizeof word);
    std::memcpy(at + sizeof word, &request, sizeof request);
  }
  /// Reads a header of size() bytes. Returns false if it is not the header of a `done`.
  bool read(const std::byte* at) {
    Le64 word;
    Le32 request;
    std::memcpy(&word, at, sizeof word);
    std::memcpy(&request, at + sizeof word, sizeof request);
    id = request;
    return word == kKind;
  }

 private:
  static constexpr std::uint64_t kKind = static_cast<std::uint64_t>(SegmentKind::done);
};

}  // namespace cluster::wire
