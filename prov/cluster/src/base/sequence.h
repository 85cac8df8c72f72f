// Serial numbers that wrap around (RFC 1982): comparisons hold while the two are less than 2^31 apart, which
// the windows guarantee.
#pragma once

#include <cstdint>

namespace cluster {

struct Sequence {
  std::uint32_t value = 0;

  friend bool operator==(Sequence, Sequence) = default;
  friend Sequence operator+(Sequence s, std::uint32_t n) { return {s.value + n}; }
  /// Signed distance a - b.
  friend std::int32_t operator-(Sequence a, Sequence b) {
    return static_cast<std::int32_t>(a.value - b.value);
  }
  Sequence& operator++() {
    ++value;
    return *this;
  }
  bool before(Sequence other) const { return *this - other < 0; }
  bool after(Sequence other) const { return *this - other > 0; }
};

}  // namespace cluster
