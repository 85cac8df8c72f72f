// Serial numbers that wrap around (RFC 1982). A comparison is correct if the two numbers differ by less than
// 2^31. The windows of the flows guarantee that. There are two kinds of serial numbers, and the compiler does
// not let code mix them. A frame has one sequence number for all its transmissions. Each transmission of the
// frame has its own transmission number.
#pragma once

#include <cstdint>

namespace cluster {

template <typename Tag>
struct SerialNumber {
  std::uint32_t value = 0;

  friend bool operator==(SerialNumber, SerialNumber) = default;
  friend SerialNumber operator+(SerialNumber s, std::uint32_t n) { return {s.value + n}; }
  /// Returns the signed distance a - b.
  friend std::int32_t operator-(SerialNumber a, SerialNumber b) {
    return static_cast<std::int32_t>(a.value - b.value);
  }
  SerialNumber& operator++() {
    ++value;
    return *this;
  }
  SerialNumber previous() const { return {value - 1}; }
  bool before(SerialNumber other) const { return *this - other < 0; }
  bool after(SerialNumber other) const { return *this - other > 0; }
};

/// The place of a frame in its flow.
using Sequence = SerialNumber<struct SequenceTag>;
/// Counts every transmission in a flow, retransmissions included.
using TransmissionNumber = SerialNumber<struct TransmissionTag>;

}  // namespace cluster
