#include "wire/segment.h"

#include <array>
#include <iterator>

#include "wire/atomic.h"
#include "wire/endian.h"

namespace cluster::wire {
namespace {

enum Field : std::uint8_t { kId = 1, kPeerId = 2, kOffset = 4, kTotal = 8, kKey = 16 };

struct Shape {
  std::uint8_t fields;  ///< the bits of the `Field`s that are always present
  std::uint8_t flags;   ///< which flags are allowed
  bool ordered;
  bool payload;  ///< true if `length` may be other than zero
};

using namespace segment_flag;

constexpr Shape kShapes[kSegmentKindLast + 1] = {
    {0, 0, false, false},                                                                   // unused
    {0, kTagged | kData | kConfirm | kInternal, true, true},                                // eager
    {kTotal, kTagged | kData | kConfirm | kInternal, true, true},                           // eager_first
    {0, 0, true, true},                                                                     // eager_next
    {kId | kTotal, kTagged | kData | kAddress | kInternal, true, false},                    // announce
    {kId | kPeerId | kOffset | kTotal, kAddress, false, false},                             // pull
    {kPeerId | kOffset, 0, false, true},                                                    // bulk
    {kId, 0, false, false},                                                                 // done
    {kTotal, 0, false, false},                                                              // credit
    {0, 0, false, false},                                                                   // close
    {kId | kOffset | kTotal | kKey, kData | kMore | kContinues | kUnanswered, true, true},  // write
    {0, 0, true, true},                                                                     // write_next
    {kId | kOffset | kTotal | kKey, kData | kMore | kContinues, true, false},               // write_announce
    {kPeerId | kOffset | kTotal | kKey, kData | kMore, true, false},                        // read
    {kId | kTotal, 0, false, false},                                                        // failed
    {kPeerId | kTotal, 0, false, false},                                                    // read_failed
    {kPeerId | kOffset | kTotal, 0, false, false},                                          // placed
    {kId | kOffset | kTotal | kKey, kMore, true, true},                                     // atomic
    {kId | kOffset, 0, false, true},                                                        // fetched
    {0, 0, false, true},                                                                    // padding
    {kId | kOffset | kTotal | kKey, 0, false, false},                                       // group_join
    {kId | kOffset | kTotal | kKey, 0, false, false},                                       // group_start
    {kId | kPeerId | kOffset | kTotal | kKey, kMore, false, false},                         // group_status
    {kId | kOffset | kTotal | kKey, 0, false, false},                                       // group_nak
    {kId | kOffset | kKey, 0, false, false},                                                // group_ask
    {kId | kPeerId | kOffset | kTotal | kKey, 0, false, true},                              // group_repair
    {kId | kOffset | kKey, 0, false, false},                                                // group_leave
    {kId | kKey, 0, false, false},                                                          // group_end
    {kId | kPeerId | kOffset | kTotal, 0, false, false},                                    // expose
    {kId | kPeerId | kOffset | kTotal | kKey, kData, false, false},                         // exposed
    {kId | kPeerId | kOffset | kTotal | kKey, 0, false, false},                             // queue_pair
    {kPeerId | kOffset | kTotal | kKey, 0, true, false},                                    // expose_region
    {kId | kTotal, kMore, false, false},                                                    // device_over
    {kId | kPeerId, 0, true, false},                                                        // new_queue_pair
};

struct Common {
  std::uint8_t kind;
  std::uint8_t flags;
  Le16 detail;
  Le32 length;
};
static_assert(sizeof(Common) == 8);

const Shape& shape_of(SegmentKind kind) { return kShapes[static_cast<std::uint8_t>(kind)]; }

bool has_id(const Shape& shape, std::uint8_t flags) {
  return (shape.fields & kId) != 0 || (flags & kConfirm) != 0;
}

/// The sizes of headers by kind, without the fields that flags add. A table saves the computation, because
/// each frame needs its sizes several times.
constexpr auto kFixedSizes = [] {
  std::array<std::uint8_t, std::size(kShapes)> sizes{};
  for (std::size_t kind = 0; kind < sizes.size(); ++kind) {
    const std::uint8_t fields = kShapes[kind].fields;
    sizes[kind] = static_cast<std::uint8_t>(sizeof(Common) + ((fields & kId) ? 4 : 0) +
                                            ((fields & kPeerId) ? 4 : 0) + ((fields & kOffset) ? 8 : 0) +
                                            ((fields & kTotal) ? 8 : 0) + ((fields & kKey) ? 8 : 0));
  }
  return sizes;
}();

std::size_t size_of(SegmentKind kind, std::uint8_t flags) {
  const std::size_t fixed = kFixedSizes[static_cast<std::uint8_t>(kind)];
  if (flags == 0) return fixed;
  const bool id = (flags & kConfirm) != 0 && (shape_of(kind).fields & kId) == 0;
  return fixed + (id ? 4 : 0) + ((flags & kTagged) ? 8 : 0) + ((flags & kData) ? 8 : 0) +
         ((flags & kAddress) ? 8 : 0);
}

/// Checks `detail`, which only atomics use, and the lengths that depend on it.
bool detail_is_valid(Segment& segment, std::uint16_t detail) {
  if (segment.kind != SegmentKind::atomic) return detail == 0;
  AtomicCode code;
  segment.detail = detail;
  return AtomicCode::unpack(detail, code) && lengths_fit(code, segment.total, segment.length);
}

/// Returns true for the segment of most small messages: a whole eager message that is not confirmed.
bool plain(const Common& common) {
  return common.kind == static_cast<std::uint8_t>(SegmentKind::eager) &&
         (common.flags & ~(kTagged | kData)) == 0;
}

template <typename Integer>
void put(std::byte*& at, Integer value) {
  const Le<Integer> field = value;
  std::memcpy(at, &field, sizeof field);
  at += sizeof field;
}

template <typename Integer>
void get(const std::byte*& at, Integer& value) {
  Le<Integer> field;
  std::memcpy(&field, at, sizeof field);
  value = field;
  at += sizeof field;
}

/// Decodes a plain segment as decode() does.
std::size_t decode_plain(const Common& common, ConstBytes in, Segment& out) {
  const bool tagged = (common.flags & kTagged) != 0;
  const bool has_data = (common.flags & kData) != 0;
  const std::size_t size = sizeof common + (tagged ? 8 : 0) + (has_data ? 8 : 0);
  if (size > in.size() || common.detail != 0) return 0;
  out = Segment{};
  out.flags = common.flags;
  out.length = common.length;
  const std::byte* at = in.data() + sizeof common;
  if (tagged) get(at, out.tag);
  if (has_data) get(at, out.data);
  return size;
}

}  // namespace

bool ordered(SegmentKind kind) { return shape_of(kind).ordered; }

std::size_t encoded_size(const Segment& segment) { return size_of(segment.kind, segment.flags); }

std::size_t encode(const Segment& segment, std::byte* out) {
  Common common;
  common.kind = static_cast<std::uint8_t>(segment.kind);
  common.flags = segment.flags;
  common.detail = segment.detail;
  common.length = segment.length;
  std::memcpy(out, &common, sizeof common);
  std::byte* at = out + sizeof common;
  if (!plain(common)) {
    const Shape& shape = shape_of(segment.kind);
    if (has_id(shape, segment.flags)) put(at, segment.id);
    if (shape.fields & kPeerId) put(at, segment.peer_id);
    if (shape.fields & kOffset) put(at, segment.offset);
    if (shape.fields & kTotal) put(at, segment.total);
    if (shape.fields & kKey) put(at, segment.key);
  }
  if (segment.flags & kTagged) put(at, segment.tag);
  if (segment.flags & kData) put(at, segment.data);
  if (segment.flags & kAddress) put(at, segment.address);
  return static_cast<std::size_t>(at - out);
}

std::size_t decode(ConstBytes in, Segment& out, SenderAddresses addresses) {
  Common common;
  if (in.size() < sizeof common) return 0;
  std::memcpy(&common, in.data(), sizeof common);
  if (plain(common)) [[likely]]
    return decode_plain(common, in, out);
  if (common.kind == 0 || common.kind > kSegmentKindLast) return 0;
  const Shape& shape = kShapes[common.kind];
  if ((common.flags & ~shape.flags) != 0) return 0;
  if (common.length != 0 && !shape.payload) return 0;
  const std::size_t size = size_of(static_cast<SegmentKind>(common.kind), common.flags);
  if (size > in.size()) return 0;
  out = Segment{};
  out.kind = static_cast<SegmentKind>(common.kind);
  out.flags = common.flags;
  out.length = common.length;
  const std::byte* at = in.data() + sizeof common;
  if (has_id(shape, common.flags)) get(at, out.id);
  if (shape.fields & kPeerId) get(at, out.peer_id);
  if (shape.fields & kOffset) get(at, out.offset);
  if (shape.fields & kTotal) get(at, out.total);
  if (shape.fields & kKey) get(at, out.key);
  if (common.flags & kTagged) get(at, out.tag);
  if (common.flags & kData) get(at, out.data);
  if ((common.flags & kAddress) != 0 && addresses == SenderAddresses::kept) get(at, out.address);
  return detail_is_valid(out, common.detail) ? size : 0;
}

}  // namespace cluster::wire
