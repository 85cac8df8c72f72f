// Frames that a hostile or broken peer could send: right in form, wrong in content. The fuzzer decides about
// every field, mostly among values near those that have a meaning, and the checksum is made to fit.
#pragma once

#include <fuzzer/FuzzedDataProvider.h>

#include <array>
#include <cstring>
#include <vector>

#include "wire/admit.h"
#include "wire/frame.h"
#include "wire/opening.h"
#include "wire/segment.h"

namespace cluster::fuzz {

/// Makes the checksum of a frame right.
inline void set_checksum(std::vector<std::byte>& frame) {
  if (frame.size() < sizeof(wire::FrameHeader)) return;
  const ConstBytes whole(frame);
  const wire::Le32 checksum = wire::frame_checksum({&whole, 1});
  std::memcpy(frame.data() + wire::kChecksumOffset, &checksum, sizeof checksum);
}

template <typename Integer>
Integer near(FuzzedDataProvider& input, Integer middle) {
  if (input.ConsumeProbability<float>() < 0.1f) return input.ConsumeIntegral<Integer>();
  return static_cast<Integer>(middle + static_cast<Integer>(input.ConsumeIntegral<std::int8_t>()));
}

/// A segment of any kind, with fields its kind has and values near those of a young session.
inline wire::Segment segment(FuzzedDataProvider& input) {
  wire::Segment segment;
  segment.kind = static_cast<wire::SegmentKind>(input.ConsumeIntegralInRange<int>(1, wire::kSegmentKindLast));
  segment.flags = input.ConsumeIntegralInRange<std::uint8_t>(0, wire::segment_flag::kAll);
  segment.id = near<std::uint32_t>(input, 0);
  segment.peer_id = near<std::uint32_t>(input, 0);
  constexpr std::array<std::uint64_t, 8> kSizes{0, 1, 999, 4000, 65536, 262144, 1u << 20, ~std::uint64_t{0}};
  segment.offset = near(input, input.PickValueInArray(kSizes));
  segment.total = near(input, input.PickValueInArray(kSizes));
  segment.key = input.ConsumeIntegralInRange<std::uint64_t>(0, 3);
  segment.tag = input.ConsumeIntegralInRange<std::uint64_t>(0, 3);
  segment.data = near(input, input.PickValueInArray(kSizes));
  segment.length = input.ConsumeIntegralInRange<std::uint32_t>(0, 1200);
  return segment;
}

/// The same as it is decoded; false if it is refused.
inline bool admit_segment(const wire::Segment& made, wire::Segment& out) {
  std::array<std::byte, wire::kSegmentHeaderMax + 64> bytes;  // flags that no kind has take space, too
  const std::size_t size = wire::encode(made, bytes.data());
  return wire::decode(ConstBytes(bytes).first(size), out) == size;
}

}  // namespace cluster::fuzz
