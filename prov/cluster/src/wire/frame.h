// A frame of the protocol is what a sender puts into one datagram.
//
//    0        1        2        3
//   +--------+--------+--------+--------+
//   | magic  |version | kind   | flags  |   0
//   +--------+--------+--------+--------+
//   |     length      |   ack delay     |   4   length: of the whole frame, including this header
//   +--------+--------+--------+--------+
//   |             checksum              |   8   CRC32C of the frame with this field zero
//   +--------+--------+--------+--------+
//   |             session               |  12   named by the receiver of the frame; 0 before it is known
//   +--------+--------+--------+--------+
//   |             sequence              |  16   begins at the sender's session; retransmissions keep it
//   +--------+--------+--------+--------+
//   |            transmission           |  20   counts every transmission, retransmissions too
//   +--------+--------+--------+--------+
//   |               ack                 |  24   every sequence before this one has arrived
//   +--------+--------+--------+--------+
//   |          largest_acked            |  28   largest transmission that has arrived
//   +--------+--------+--------+--------+
//   | opening block  (if flags say so)  |  32
//   | ack block      (if flags say so)  |
//   | part block     (if flags say so)  |
//   | segments ...                      |
//
// Each frame states its own length, so several frames may lie back to back in one buffer, as segmentation
// offload delivers them. All integers are little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

#include "base/bytes.h"
#include "base/sequence.h"
#include "wire/endian.h"

namespace cluster::wire {

inline constexpr std::uint8_t kMagic = 0xC5;
inline constexpr std::uint8_t kVersion = 2;

enum class FrameKind : std::uint8_t {
  flow = 1,            ///< data, acknowledgement or both
  reset = 2,           ///< refuses the frame that the following ResetBlock quotes
  fin = 3,             ///< the sender closes; `sequence` follows that of its last frame
  keep_alive = 4,      ///< "is this process alive?"; the keep-alive responder answers, never the engine
  alive = 5,           ///< the answer to a keep_alive; repeats its `sequence`
  datagram = 6,        ///< one message, without a session; sent once
  path_challenge = 7,  ///< "does this path lead to the session?" (RFC 9000 8.2)
  /// The answer to a path_challenge, from the engine that has the session. Repeats the `sequence` of the
  /// challenge.
  path_response = 8,
  // Only seal/ sends and processes the next three:
  association_request = 9,    ///< "these are my salt and my addresses", authenticated by the key of the job
  association_response = 10,  ///< the same from the other side, authenticated by the keys of the association
  /// The receiver of a frame cannot open the frame, or accepts only sealed frames. It asks for an
  /// association_request.
  association_unknown = 11,
  // Sent by multicast to all members of a group (group/):
  group = 12,           ///< messages: `session` is the stream, `ack` its end so far, `transmission` the group
  group_announce = 13,  ///< "a member of the group is here": `sequence` and `transmission` are the group
  sibling_request = 14,   ///< "is the caller in the RailBlock after the header an endpoint of your process?"
  sibling_response = 15,  ///< "yes"; repeats the request; there is no answer if the caller is not a sibling
  // Only relay/ sends and processes the next four (wire/relay_frame.h):
  relay_request = 16,  ///< "may I become a member of this relay?"
  relay_offer = 17,    ///< "yes, if you repeat this cookie"
  relay_join = 18,     ///< repeats the cookie
  relay_joined = 19,   ///< "you are the member with this number"
};

namespace frame_flag {
inline constexpr std::uint8_t kOpening = 1;        ///< an OpeningBlock comes first
inline constexpr std::uint8_t kAckBlock = 2;       ///< an AckBlock comes next
inline constexpr std::uint8_t kSequenced = 4;      ///< the frame has its own `sequence` and carries segments
inline constexpr std::uint8_t kOrdered = 8;        ///< its segments wait for all frames before it
inline constexpr std::uint8_t kAckNow = 16;        ///< the sender waits for the acknowledgement or a `done`
inline constexpr std::uint8_t kAcknowledges = 32;  ///< `ack`, `largest_acked` and `ack_delay` are valid
/// Every flag that a frame of a flow may have, except the next two.
inline constexpr std::uint8_t kAll = 63;
inline constexpr std::uint8_t kSealed = 64;  ///< the frame ends in a SealTrailer and has no checksum
inline constexpr std::uint8_t kPart = 128;   ///< carries a PartBlock and a piece of frame `sequence`
}  // namespace frame_flag

/// The layout on the wire.
struct FrameHeader {
  std::uint8_t magic;
  std::uint8_t version;
  std::uint8_t kind;
  std::uint8_t flags;
  Le16 length;
  Le16 ack_delay;  ///< time since the arrival of `largest_acked`, in units of 1024 ns, saturating
  Le32 checksum;
  Le32 session;
  Le32 sequence;
  Le32 transmission;
  Le32 ack;
  Le32 largest_acked;
};
static_assert(sizeof(FrameHeader) == 32 && alignof(FrameHeader) == 1);

/// Stores the 64 random bits of a keep_alive, a path_challenge or a sibling_request, which the answer
/// repeats.
inline void set_challenge(FrameHeader& header, std::uint64_t challenge) {
  header.transmission = static_cast<std::uint32_t>(challenge);
  header.ack = static_cast<std::uint32_t>(challenge >> 32);
}

/// Stores the number of the sender's rail in a path_challenge. By this number the peer recognises the rail
/// even if the rail's address was replaced. The field stays 0 if the sender does not state its rail.
inline void set_rail(FrameHeader& header, std::uint8_t rail) {
  header.largest_acked = std::uint32_t{rail} + 1;
}

/// Precedes a piece of a frame that was too long for the path. The segments of that frame have `total` bytes.
/// The sender has split these segments into `count` pieces of equal size, but the last piece may be shorter.
struct PartBlock {
  std::uint8_t number;  ///< index of this piece, from 0
  std::uint8_t count;   ///< number of pieces, 2 to kPartsMax
  Le16 total;

  std::size_t piece_max() const { return (total + std::size_t{count} - 1) / count; }
  std::size_t begin() const { return number * piece_max(); }
};
static_assert(sizeof(PartBlock) == 4);

/// The end of a sealed frame (seal/sealed_link.h). In a sealed frame, the checksum field of the header holds
/// an id (seal/association.h), which names the salt and the key of the sender.
struct SealTrailer {
  Le64 counter;  ///< counts the sender's frames in this direction; also the end of the nonce
  std::uint8_t tag[16];
};
static_assert(sizeof(SealTrailer) == 24);

/// The hardware address of the sender. It may follow a frame in its datagram (docs/protocol.md 4.8). The
/// length of the frame does not include it, and nothing protects it.
struct AddressTrailer {
  /// No frame and no RelayTag begins with this byte.
  static constexpr std::uint8_t kMagic = 0xC7;

  std::uint8_t magic;
  std::uint8_t reserved;
  std::uint8_t mac[6];
};
static_assert(sizeof(AddressTrailer) == 8);

/// How the bytes of a frame are protected.
enum class Integrity : std::uint8_t {
  checksum,
  seal,  ///< the seal in the trailer; there is no checksum
};

inline constexpr std::size_t kPartsMax = 64;  ///< the most parts of one frame
inline constexpr std::size_t kChecksumOffset = 8;
inline constexpr std::uint64_t kAckDelayUnit = 1024;  ///< ns per unit of `ack_delay`
inline constexpr std::size_t kFrameMax = 65535;       ///< the largest `length`

// The reset block proves that the sender of a reset has seen the frame that it refuses. Therefore a host that
// cannot read the traffic cannot end a session with a guessed reset.

enum class ResetReason : std::uint8_t {
  unknown_session = 1,  ///< the refused frame names a closed or unknown session; `epoch` is where the
                        ///< sessions of the reset's sender begin
  stale_epoch = 2,      ///< the refused opening is older than an opening already seen, which had `epoch`
  foreign_source = 3,   ///< the refused opening came from an address that it does not name; `epoch` is 0
};

/// The layout on the wire. The block follows a header whose session is 0.
struct ResetBlock {
  std::uint8_t reason;
  std::uint8_t reserved[3];
  Le32 session;  ///< from the refused frame, as the next two; from its opening if it names session 0
  Le32 sequence;
  Le32 transmission;
  Le64 epoch;
};
static_assert(sizeof(ResetBlock) == 24);

// The functions below complete the header of every frame before transmission, except for the association
// frames of seal/. They know nothing about blocks and segments, which the caller has already written after
// the header.

/// Creates a header at the start of a frame. The caller fills the header in place. Building the header
/// elsewhere and copying it would be slower: the processor would have to wait until the bytes just written
/// have left its store buffer.
inline FrameHeader& header_at(std::byte* start) { return *new (start) FrameHeader{}; }

/// Sets magic, version, length and checksum. The caller must have set all other fields. `pieces` are the
/// whole frame, and begin with the header. A frame that will be sealed gets no checksum.
void encode_frame(FrameHeader& header, std::span<const ConstBytes> pieces,
                  Integrity integrity = Integrity::checksum);
/// Together, these two functions do what encode_frame() does. encode_kind() sets everything except the
/// checksum, so frames of the same kind and length can share its result. encode_checksum() sets the checksum.
void encode_kind(FrameHeader& header, std::size_t frame_length);
void encode_checksum(FrameHeader& header, std::span<const ConstBytes> pieces,
                     Integrity integrity = Integrity::checksum);

/// The numbers in the header of a lone frame (wire/admit.h: LoneFrame).
struct LoneNumbers {
  std::uint16_t ack_delay = 0;
  std::uint32_t session = 0;
  Sequence sequence;
  TransmissionNumber transmission;
  Sequence ack;
  TransmissionNumber largest_acked;
};

/// Writes the whole header of a frame of a flow, with these flags. The frame's `length` bytes must lie at
/// `start` without a gap.
void encode_lone(const LoneNumbers& numbers, std::uint8_t flags, std::byte* start, std::size_t length);

}  // namespace cluster::wire
