// Integers in the format of the wire: little-endian and unaligned. Reading or writing such an integer
// converts it. Structs of these integers have no padding, and may be copied to and from any position of a
// frame.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace cluster::wire {

static_assert(std::endian::native == std::endian::little || std::endian::native == std::endian::big);

template <typename Integer>
class Le {
 public:
  Le() = default;
  Le(Integer value) { *this = value; }  // NOLINT(google-explicit-constructor): fields are used like values
  Le& operator=(Integer value) {
    if constexpr (std::endian::native == std::endian::big) value = swapped(value);
    std::memcpy(bytes_, &value, sizeof value);
    return *this;
  }
  operator Integer() const {  // NOLINT(google-explicit-constructor)
    Integer value;
    std::memcpy(&value, bytes_, sizeof value);
    if constexpr (std::endian::native == std::endian::big) value = swapped(value);
    return value;
  }

 private:
  static Integer swapped(Integer value) {
    Integer result = 0;
    for (unsigned i = 0; i < sizeof value; ++i) {
      result = static_cast<Integer>((result << 8) | ((value >> (8 * i)) & 0xff));
    }
    return result;
  }

  std::uint8_t bytes_[sizeof(Integer)] = {};
};

using Le16 = Le<std::uint16_t>;
using Le32 = Le<std::uint32_t>;
using Le64 = Le<std::uint64_t>;

}  // namespace cluster::wire
