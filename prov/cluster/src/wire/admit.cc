#include "wire/admit.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "wire/checksum.h"

namespace cluster::wire {
namespace {

/// What may be set on a frame of this kind; nothing for kinds that do not exist.
struct KindRule {
  bool exists;
  std::uint8_t flags;
};

using namespace frame_flag;

constexpr KindRule kRules[] = {
    {false, 0},
    {true, kAll | kPart},                          // flow
    {true, 0},                                     // reset
    {true, kOpening | kAckBlock | kAcknowledges},  // fin
    {true, 0},                                     // keep_alive
    {true, 0},                                     // alive
    {true, 0},                                     // datagram
    {true, 0},                                     // path_challenge
    {true, 0},                                     // path_response
    {false, 0},                                    // association_request: ends in seal/
    {false, 0},                                    // association_response
    {false, 0},                                    // association_unknown
    {true, kSequenced | kAckNow},                  // group
    {true, 0},                                     // group_announce
    {true, 0},                                     // sibling_request
    {true, 0},                                     // sibling_response
};

bool implies(std::uint8_t flags, std::uint8_t one, std::uint8_t other) {
  return (flags & one) == 0 || (flags & other) != 0;
}

/// Flags without kSealed.
bool flags_are_valid(std::uint8_t kind, std::uint8_t flags) {
  return (flags & ~kRules[kind].flags) == 0 && implies(flags, kOrdered | kAckNow | kPart, kSequenced) &&
         implies(flags, kAckBlock, kAcknowledges);
}

bool is_ours(const FrameHeader& header) { return header.magic == kMagic && header.version == kVersion; }

/// `least`: bytes of header and trailer.
bool is_frame(const FrameHeader& header, std::size_t least, std::size_t available) {
  return is_ours(header) && header.kind < std::size(kRules) && kRules[header.kind].exists &&
         header.length >= least && header.length <= available;
}

/// Leaves the blocks as they are: has_opening and has_ranges say whether they are set, and clearing them
/// would cost more than reading the whole frame.
void copy_header(const FrameHeader& header, FrameView& out) {
  out.kind = static_cast<FrameKind>(header.kind);
  out.flags = header.flags & (kAll | kPart);
  out.length = header.length;
  out.ack_delay_ns = std::uint64_t{header.ack_delay} * kAckDelayUnit;
  out.session = header.session;
  out.sequence = {header.sequence};
  out.transmission = {header.transmission};
  out.ack = {header.ack};
  out.largest_acked = {header.largest_acked};
  out.has_opening = false;
  out.has_ranges = false;
  out.segments = {};
}

/// Takes the blocks that the flags announce off the front of `rest`.
bool read_blocks(ConstBytes& rest, FrameView& out) {
  if ((out.flags & kOpening) != 0) {
    const std::size_t size = decode(rest, out.opening, out.rails);
    if (size == 0) return false;
    out.has_opening = true;
    rest = rest.subspan(size);
  }
  if ((out.flags & kAckBlock) != 0) {
    const std::size_t size = decode(rest, out.ack, out.ranges);
    if (size == 0) return false;
    out.has_ranges = true;
    rest = rest.subspan(size);
  }
  return true;
}

/// Takes the part block off the front of `rest`, which must be as long as it says.
bool read_part(ConstBytes& rest, FrameView& out) {
  if (rest.size() <= sizeof out.part || out.session == 0) return false;
  std::memcpy(&out.part, rest.data(), sizeof out.part);
  rest = rest.subspan(sizeof out.part);
  const PartBlock& part = out.part;
  if (part.count < 2 || part.count > kPartsMax || part.number >= part.count || part.begin() >= part.total)
    return false;
  return rest.size() == std::min(part.piece_max(), part.total - part.begin());
}

bool read_reset(ConstBytes rest, FrameView& out) {
  if (rest.size() != sizeof out.reset) return false;
  std::memcpy(&out.reset, rest.data(), sizeof out.reset);
  const bool known = out.reset.reason == static_cast<std::uint8_t>(ResetReason::unknown_session) ||
                     out.reset.reason == static_cast<std::uint8_t>(ResetReason::stale_epoch);
  return known && out.reset.epoch < kEpochEnd;
}

bool about_siblings(FrameKind kind) {
  return kind == FrameKind::sibling_request || kind == FrameKind::sibling_response;
}

/// The name that is asked about.
bool read_caller(ConstBytes rest, FrameView& out) {
  if (rest.size() != sizeof(RailBlock)) return false;
  out.rails = rest;
  return valid_rails(rest);
}

}  // namespace

Refusal admit(ConstBytes bytes, FrameView& out, Integrity integrity) {
  FrameHeader header;
  if (bytes.size() < sizeof header) return Refusal::malformed;
  std::memcpy(&header, bytes.data(), sizeof header);
  const bool seal = integrity == Integrity::seal;
  if (seal != ((header.flags & kSealed) != 0)) {
    return !seal && is_ours(header) ? Refusal::sealed : Refusal::malformed;
  }
  const std::size_t trailer = seal ? sizeof(SealTrailer) : 0;
  if (!is_frame(header, sizeof header + trailer, bytes.size())) return Refusal::malformed;
  const ConstBytes whole = bytes.first(header.length);
  if (!seal && frame_checksum({&whole, 1}) != header.checksum) return Refusal::checksum;
  if (!flags_are_valid(header.kind, header.flags & ~kSealed)) return Refusal::malformed;
  copy_header(header, out);
  ConstBytes rest = whole.subspan(sizeof header, whole.size() - sizeof header - trailer);
  if (out.kind == FrameKind::reset) return read_reset(rest, out) ? Refusal::none : Refusal::malformed;
  if (about_siblings(out.kind)) return read_caller(rest, out) ? Refusal::none : Refusal::malformed;
  if (!read_blocks(rest, out)) return Refusal::malformed;
  const bool padded = out.kind == FrameKind::keep_alive || out.kind == FrameKind::path_challenge;
  if (padded) return Refusal::none;
  const bool carries = out.sequenced() || out.kind == FrameKind::datagram;
  if (carries == rest.empty()) return Refusal::malformed;
  if (out.in_part() && !read_part(rest, out)) return Refusal::malformed;
  out.segments = rest;
  return Refusal::none;
}

std::uint32_t frame_checksum(std::span<const ConstBytes> pieces) {
  const ConstBytes head = pieces[0];
  std::array<std::byte, sizeof(FrameHeader)> front;
  std::memcpy(front.data(), head.data(), front.size());
  std::memset(&front[kChecksumOffset], 0, sizeof(Le32));  // the checksum itself counts as zero
  std::uint32_t crc = crc32c(crc32c(0, front), head.subspan(front.size()));
  for (const ConstBytes& piece : pieces.subspan(1)) crc = crc32c(crc, piece);
  return crc;
}

}  // namespace cluster::wire
