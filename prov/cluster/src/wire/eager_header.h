// The header of the most frequent segment, a whole eager message that is not confirmed, for both ends of a ring in shared memory. It is
// written and read in one go, and consists of the same bytes as that of encode() and decode() in wire/segment.h. Its first eight bytes are
// one word:
//
//   kind | flags << 8 | detail (0) << 16 | length << 32
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "wire/endian.h"
#include "wire/segment.h"

namespace cluster::wire {

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
  /// False if a segment of another shape begins there. Reads at most three words, each once.
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
  /// What differs between headers of this shape.
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
