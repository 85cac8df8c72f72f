#include "wire/run_view.h"

#include <cstring>

namespace cluster::wire {
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

/// True if `frame` is what the `i`th frame behind `first` must be, all but the payload.
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

bool admit_run(ConstBytes bytes, const FrameView& first, RunView& out, Integrity integrity) {
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
  out.first = first.segments.data() + header;
  const std::byte* const begin = bytes.data();
  for (std::uint32_t i = 1; bytes.size() >= (i + std::size_t{1}) * length; ++i, ++out.count) {
    const std::byte* const frame = begin + i * length;
    if (!continues(begin, frame, i, first, out.segment, header)) break;
    const ConstBytes whole(frame, length);
    const bool checked = integrity == Integrity::checksum;
    if (checked && frame_checksum({&whole, 1}) != field_at<Le32>(frame + kChecksumOffset)) break;
  }
  return out.count > 1;
}

}  // namespace cluster::wire
