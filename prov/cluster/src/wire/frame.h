// The frame: what one Ethernet frame carries behind its UDP header.
//
//    0        1        2        3
//   +--------+--------+--------+--------+
//   | magic  |version | kind   | flags  |   0
//   +--------+--------+--------+--------+
//   |     length      |   ack delay     |   4   length: of the whole frame, this header included
//   +--------+--------+--------+--------+
//   |             checksum              |   8   CRC32C of the frame with this field zero
//   +--------+--------+--------+--------+
//   |             session               |  12   named by the receiver of the frame; 0 before it is known
//   +--------+--------+--------+--------+
//   |             sequence              |  16   counts from the sender's session; retransmissions keep it
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
// Frames describe their own length, so several may lie back to back in one datagram buffer
// (segmentation offload leaves them so). All integers are little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

#include "base/bytes.h"
#include "wire/endian.h"

namespace cluster::wire {

inline constexpr std::uint8_t kMagic = 0xC5;
inline constexpr std::uint8_t kVersion = 2;

enum class FrameKind : std::uint8_t {
  flow = 1,        ///< data, acknowledgement or both
  reset = 2,       ///< the receiver has no such session: a ResetBlock follows
  fin = 3,         ///< the sender closes; `sequence` is the one after its last frame
  keep_alive = 4,  ///< "is this process alive?"; answered by the keep-alive responder, never by the engine
  alive = 5,       ///< the answer to a keep_alive, whose `sequence` it echoes
  datagram = 6,    ///< one message, of no session and sent once
  path_challenge = 7,  ///< "does this path lead to the session?" (RFC 9000 8.2)
  /// The answer to a path_challenge by the engine that has the session; echoes its `sequence`.
  path_response = 8,
  // seal/ sends and consumes the next three:
  association_request = 9,    ///< "these are my salt and my addresses": authenticated by the key of the job
  association_response = 10,  ///< the same in return, authenticated by the keys of the association
  association_unknown = 11,   ///< the receiver of a sealed frame has no keys for it, and asks for a request
  // By multicast, to all members of a group (group/):
  group = 12,           ///< messages: `session` is the stream, `transmission` the group, `ack` the end so far
  group_announce = 13,  ///< "a member of the group is here": `sequence` and `transmission` are the group
  sibling_request =
      14,  ///< "is this caller, named by the RailBlock behind the header, an endpoint of your process?"
  sibling_response = 15,  ///< "yes": repeats the request; if the caller is no sibling, there is no answer
};

namespace frame_flag {
inline constexpr std::uint8_t kOpening = 1;        ///< an OpeningBlock comes first
inline constexpr std::uint8_t kAckBlock = 2;       ///< an AckBlock comes next
inline constexpr std::uint8_t kSequenced = 4;      ///< occupies `sequence` and carries segments
inline constexpr std::uint8_t kOrdered = 8;        ///< its segments wait for all frames before it
inline constexpr std::uint8_t kAckNow = 16;        ///< the sender waits for this acknowledgement
inline constexpr std::uint8_t kAcknowledges = 32;  ///< `ack` and `largest_acked` are valid
inline constexpr std::uint8_t kAll = 63;           ///< what frames of flows may carry, besides the next two
inline constexpr std::uint8_t kSealed = 64;  ///< the frame ends in a SealTrailer, in place of the checksum
inline constexpr std::uint8_t kPart = 128;   ///< carries a PartBlock and a piece of frame `sequence`
}  // namespace frame_flag

/// As it lies on the wire.
struct FrameHeader {
  std::uint8_t magic;
  std::uint8_t version;
  std::uint8_t kind;
  std::uint8_t flags;
  Le16 length;
  Le16 ack_delay;  ///< age of the arrival that `largest_acked` names, in units of 1024 ns, saturating
  Le32 checksum;
  Le32 session;
  Le32 sequence;
  Le32 transmission;
  Le32 ack;
  Le32 largest_acked;
};
static_assert(sizeof(FrameHeader) == 32 && alignof(FrameHeader) == 1);

/// In a keep_alive, a path_challenge, a sibling_request and their answers: 64 random bits, which the answer
/// repeats.
inline void set_challenge(FrameHeader& header, std::uint64_t challenge) {
  header.transmission = static_cast<std::uint32_t>(challenge);
  header.ack = static_cast<std::uint32_t>(challenge >> 32);
}

/// Stands in front of a piece of a frame that was too long for the path. The sender has cut the segments of
/// that frame, `total` bytes, into `count` pieces of equal size; the last may be shorter.
struct PartBlock {
  std::uint8_t number;  ///< of this piece, from 0
  std::uint8_t count;   ///< 2 to kPartsMax
  Le16 total;

  std::size_t piece_max() const { return (total + std::size_t{count} - 1) / count; }
  std::size_t begin() const { return number * piece_max(); }
};
static_assert(sizeof(PartBlock) == 4);

/// The end of a sealed frame (seal/sealed_link.h). The checksum field of its header then names the sender:
/// the first bytes of its salt.
struct SealTrailer {
  Le64 counter;  ///< counts the sender's frames in this direction; serves as nonce
  std::uint8_t tag[16];
};
static_assert(sizeof(SealTrailer) == 24);

/// What protects the bytes of a frame.
enum class Integrity : std::uint8_t {
  checksum,
  seal,  ///< the trailer; the checksum field holds no checksum
};

inline constexpr std::size_t kPartsMax = 64;  ///< of one frame
inline constexpr std::size_t kChecksumOffset = 8;
inline constexpr std::uint64_t kAckDelayUnit = 1024;  ///< ns per unit of `ack_delay`
inline constexpr std::size_t kFrameMax = 65535;       ///< the largest `length`

// The reset block proves that the sender of a reset has seen the frame that it refuses. So a host that cannot
// read the traffic cannot end a session by guessing.

enum class ResetReason : std::uint8_t {
  unknown_session = 1,  ///< the refused frame's session is closed or unknown; `epoch` is where this
                        ///< incarnation's sessions begin
  stale_epoch = 2,      ///< the refused opening is older than one already seen; `epoch` is that one
};

/// As it lies on the wire, behind a header whose session is 0.
struct ResetBlock {
  std::uint8_t reason;
  std::uint8_t reserved[3];
  Le32 session;  ///< this and the next two: from the refused frame
  Le32 sequence;
  Le32 transmission;
  Le64 epoch;
};
static_assert(sizeof(ResetBlock) == 24);

// The only encoder of frame headers. It completes every frame that leaves, with or without a session. It
// knows no blocks and no segments; the caller has put them behind the header.

/// Creates a header at the start of a frame, which the caller fills in place. To copy a header that was just
/// written byte by byte, the processor would wait for its store buffer, once per frame.
inline FrameHeader& header_at(std::byte* start) { return *new (start) FrameHeader{}; }

/// Sets magic, version, length and checksum; everything else is there already. The pieces are the whole
/// frame, and begin with the header. A frame that will be sealed has no checksum.
void encode_frame(FrameHeader& header, std::span<const ConstBytes> pieces,
                  Integrity integrity = Integrity::checksum);
/// The same in two steps, for frames that share the result of the first step. encode_kind() sets everything
/// but the checksum; encode_checksum() sets the checksum.
void encode_kind(FrameHeader& header, std::size_t frame_length);
void encode_checksum(FrameHeader& header, std::span<const ConstBytes> pieces,
                     Integrity integrity = Integrity::checksum);

}  // namespace cluster::wire
