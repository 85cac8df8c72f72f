#include "wire/admit.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "wire/checksum.h"

namespace cluster::wire {
namespace {

/// Says whether admit() accepts frames of a kind, and which flags such a frame may have.
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
    {false, 0},                                    // association_request: seal/ consumes it
    {false, 0},                                    // association_response
    {false, 0},                                    // association_unknown
    {true, kSequenced | kAckNow},                  // group
    {true, 0},                                     // group_announce
    {true, 0},                                     // sibling_request
    {true, 0},                                     // sibling_response
    {false, 0},                                    // relay_request: relay/ consumes it
    {false, 0},                                    // relay_offer
    {false, 0},                                    // relay_join
    {false, 0},                                    // relay_joined
};

bool implies(std::uint8_t flags, std::uint8_t one, std::uint8_t other) {
  return (flags & one) == 0 || (flags & other) != 0;
}

/// Checks all flags of a frame except kSealed.
bool flags_are_valid(std::uint8_t kind, std::uint8_t flags) {
  return (flags & ~kRules[kind].flags) == 0 && implies(flags, kOrdered | kAckNow | kPart, kSequenced) &&
         implies(flags, kAckBlock, kAcknowledges);
}

bool is_ours(const FrameHeader& header) { return header.magic == kMagic && header.version == kVersion; }

/// Checks what all kinds have in common. `least`: the size of header and trailer. `available`: the size of
/// the rest of the datagram.
bool is_frame(const FrameHeader& header, std::size_t least, std::size_t available) {
  return is_ours(header) && header.kind < std::size(kRules) && kRules[header.kind].exists &&
         header.length >= least && header.length <= available;
}

/// Copies the header fields into `out`. Does not clear the blocks in `out`, because clearing them would cost
/// more than reading the whole frame. has_opening and has_ranges say whether the blocks are valid.
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

/// Reads the blocks that the flags announce, and removes them from the front of `rest`.
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

/// Reads the part block, and removes it from the front of `rest`. What remains must have the length that the
/// block implies.
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
  const bool known = out.reset.reason >= static_cast<std::uint8_t>(ResetReason::unknown_session) &&
                     out.reset.reason <= static_cast<std::uint8_t>(ResetReason::foreign_source);
  return known && out.reset.epoch < kEpochEnd;
}

bool about_siblings(FrameKind kind) {
  return kind == FrameKind::sibling_request || kind == FrameKind::sibling_response;
}

/// Reads the RailBlock of a sibling_request or sibling_response.
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

namespace {

constexpr std::byte kEager{static_cast<std::uint8_t>(SegmentKind::eager)};
constexpr std::byte kDone{static_cast<std::uint8_t>(SegmentKind::done)};

/// Reads the header of the last segment. Returns its size, or 0 if `rest` is anything but one eager message.
[[gnu::always_inline]] inline std::size_t read_lone_message(ConstBytes rest, EagerHeader& message) {
  if (rest.size() < EagerHeader::size_with(rest[1]) || !message.read(rest.data())) return 0;
  return rest.size() - message.size() == message.length ? message.size() : 0;
}

/// Does the same for a whole write.
std::size_t read_lone_write(ConstBytes rest, WriteHeader& write) {
  if (rest.size() < WriteHeader::size() || !write.read(rest.data())) return 0;
  return rest.size() - WriteHeader::size() == write.length ? WriteHeader::size() : 0;
}

/// Reads the segments of a frame that does not begin with a message.
[[gnu::noinline]] bool read_lone_access(ConstBytes rest, bool in_order, LoneFrame& out) {
  using Content = LoneFrame::Content;
  out.answers = rest[0] == kDone;
  out.content = Content::nothing;
  if (out.answers) {
    if (rest.size() < AnswerHeader::size() || !out.answer.read(rest.data())) return false;
    rest = rest.subspan(AnswerHeader::size());
    if (rest.empty()) return !in_order;
    if (rest.size() < sizeof(std::uint64_t)) return false;
  }
  const bool message = rest[0] == kEager;
  out.content = message ? Content::message : Content::write;
  const std::size_t head = message ? read_lone_message(rest, out.message) : read_lone_write(rest, out.write);
  out.payload = rest.data() + head;
  return head != 0 && in_order;
}

/// Reads the segments of the frame. Returns false if they are anything but those of a lone frame. `in_order`:
/// the frame has the flag kOrdered.
[[gnu::always_inline]] inline bool read_lone_segments(ConstBytes rest, bool in_order, LoneFrame& out) {
  if (rest.size() < sizeof(std::uint64_t)) return false;
  if (rest[0] != kEager) [[unlikely]]
    return read_lone_access(rest, in_order, out);
  out.answers = false;
  out.content = LoneFrame::Content::message;
  const std::size_t head = read_lone_message(rest, out.message);
  out.payload = rest.data() + head;
  return head != 0 && in_order;
}

std::uint32_t low_half(std::uint64_t word) { return static_cast<std::uint32_t>(word); }
std::uint32_t high_half(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); }

}  // namespace

bool admit_lone(ConstBytes datagram, LoneFrame& out) {
  if (session_of_lone(datagram) == 0) return false;
  std::array<Le64, 4> words;
  static_assert(sizeof words == sizeof(FrameHeader));
  std::memcpy(words.data(), datagram.data(), sizeof words);
  const std::uint64_t first = words[0], second = words[1], third = words[2], fourth = words[3];
  if (static_cast<std::uint16_t>(first >> 32) != datagram.size()) return false;
  const ConstBytes rest = datagram.subspan(sizeof words);
  if (!read_lone_segments(rest, (first >> 24 & kOrdered) != 0, out)) return false;
  words[1] = second & ~std::uint64_t{0xffffffff};  // the checksum itself counts as zero
  const std::uint32_t crc = crc32c(crc32c(0, as_bytes(words.data(), sizeof words)), rest);
  if (crc != static_cast<std::uint32_t>(second)) return false;
  out.session = high_half(second);
  out.sequence = {low_half(third)};
  out.transmission = {high_half(third)};
  out.ack = {low_half(fourth)};
  out.largest_acked = {high_half(fourth)};
  out.ack_delay = static_cast<std::uint16_t>(first >> 48);
  out.ack_now = (first >> 24 & kAckNow) != 0;
  return true;
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

namespace {

constexpr std::size_t kSessionOffset = kChecksumOffset + sizeof(Le32);
constexpr std::size_t kNumbersOffset = kSessionOffset + sizeof(Le32);
constexpr std::size_t kAckOffset = kNumbersOffset + 2 * sizeof(Le32);
static_assert(offsetof(FrameHeader, session) == kSessionOffset);
static_assert(offsetof(FrameHeader, sequence) == kNumbersOffset);
static_assert(offsetof(FrameHeader, ack) == kAckOffset);

bool same_bytes(const std::byte* one, const std::byte* other, std::size_t begin, std::size_t end) {
  return std::memcmp(one + begin, other + begin, end - begin) == 0;
}

template <typename Field>
Field field_at(const std::byte* at) {
  Field field;
  std::memcpy(&field, at, sizeof field);
  return field;
}

std::uint32_t checksum_of(const std::byte* frame, std::size_t length) {
  const ConstBytes whole(frame, length);
  return frame_checksum({&whole, 1});
}

/// Returns the CRC of a frame of the run, and copies the frame's payload to `to`.
std::uint32_t copied_checksum(const std::byte* frame, const RunView& run, std::byte* to) {
  std::array<std::byte, sizeof(FrameHeader) + kSegmentHeaderMax> head;
  std::memcpy(head.data(), frame, run.head);
  std::memset(&head[kChecksumOffset], 0, sizeof(Le32));  // the checksum itself counts as zero
  const std::uint32_t crc = crc32c(0, as_bytes(head.data(), run.head));
  return crc32c_copy(crc, to, {frame + run.head, run.segment.length});
}

/// Returns true if `frame`, apart from its payload, has the bytes that the `i`th frame after `first` must
/// have.
bool continues(const std::byte* first, const std::byte* frame, std::uint32_t i, const FrameView& view,
               const Segment& segment, std::size_t segment_header) {
  const bool alike = same_bytes(first, frame, 0, kChecksumOffset) &&
                     same_bytes(first, frame, kSessionOffset, kNumbersOffset) &&
                     same_bytes(first, frame, kAckOffset, sizeof(FrameHeader));
  if (!alike) return false;
  const std::uint32_t sequence = field_at<Le32>(frame + kNumbersOffset);
  const std::uint32_t transmission = field_at<Le32>(frame + kNumbersOffset + sizeof(Le32));
  if (sequence != view.sequence.value + i || transmission != view.transmission.value + i) return false;
  const std::byte* const one = first + sizeof(FrameHeader);
  const std::byte* const other = frame + sizeof(FrameHeader);
  if (segment.kind != SegmentKind::bulk) return same_bytes(one, other, 0, segment_header);
  const std::uint64_t offset = field_at<Le64>(other + kBulkOffsetAt);
  const std::uint64_t wanted = segment.offset + std::uint64_t{i} * segment.length;
  return same_bytes(one, other, 0, kBulkOffsetAt) && offset == wanted;
}

}  // namespace

bool match_run(ConstBytes bytes, const FrameView& first, RunView& out) {
  constexpr std::uint8_t plain = frame_flag::kSequenced | frame_flag::kOrdered | frame_flag::kAcknowledges;
  const std::size_t length = first.length;
  if (first.kind != FrameKind::flow || (first.flags & ~plain) != 0 || !first.sequenced()) return false;
  if (bytes.size() < 2 * length) return false;
  const std::size_t header = decode(first.segments, out.segment);
  const bool kind_runs = out.segment.kind == SegmentKind::bulk || out.segment.kind == SegmentKind::eager_next;
  if (header == 0 || !kind_runs || first.in_order() != ordered(out.segment.kind)) return false;
  if (out.segment.length == 0 || header + out.segment.length != first.segments.size()) return false;
  out.count = 1;
  out.frame_length = length;
  out.head = static_cast<std::size_t>(first.segments.data() - bytes.data()) + header;
  out.stored = false;
  out.first = first.segments.data() + header;
  const std::byte* const begin = bytes.data();
  for (std::uint32_t i = 1; bytes.size() >= (i + std::size_t{1}) * length; ++i, ++out.count) {
    const std::byte* const frame = begin + i * length;
    if (!continues(begin, frame, i, first, out.segment, header)) break;
  }
  return out.count > 1;
}

bool check_run(RunView& run, Bytes into, Integrity integrity) {
  if (integrity != Integrity::checksum) return run.count > 1;
  const std::size_t part = run.segment.length;
  const std::byte* const begin = run.first - run.head;
  run.stored = into.size() >= run.size();
  if (run.stored) std::memcpy(into.data(), run.first, part);
  std::size_t right = 1;
  for (; right < run.count; ++right) {
    const std::byte* const frame = begin + right * run.frame_length;
    const std::uint32_t crc =
        run.stored ? copied_checksum(frame, run, &into[right * part]) : checksum_of(frame, run.frame_length);
    if (crc != field_at<Le32>(frame + kChecksumOffset)) break;
  }
  run.count = right;
  return right > 1;
}

}  // namespace cluster::wire
