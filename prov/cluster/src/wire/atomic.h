// The 16 bits in a segment that say what a remote atomic operation does: the operation, the type of the
// elements, and whether the answer carries the previous values. The protocol defines the numbers. api/ checks
// that they equal libfabric's numbers.
//
// An operation on many elements is atomic only for each single element. So the initiator may split the
// operation, into parts of at most kAtomicPart bytes. Each part fits into the smallest frame that a peer may
// ask for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace cluster::wire {

enum class AtomicOp : std::uint8_t {
  min,  // from here to bxor: combine with one operand
  max,
  sum,
  prod,
  lor,
  land,
  bor,
  band,
  lxor,
  bxor,
  read,   // no operand
  write,  // one operand, which replaces the target
  cswap,  // from here to cswap_gt: replace the target if its comparison with the comparand is true
  cswap_ne,
  cswap_le,
  cswap_lt,
  cswap_ge,
  cswap_gt,
  mswap,  // replace the bits that the mask selects
};
inline constexpr std::size_t kAtomicOps = static_cast<std::size_t>(AtomicOp::mswap) + 1;

enum class AtomicType : std::uint8_t {
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  float32,
  float64,
  complex32,  // named after the size of one of its two halves
  complex64,
  float_long,  // as the hosts store it, including padding
  complex_long,
  int128,
  uint128,
};
inline constexpr std::size_t kAtomicTypes = static_cast<std::size_t>(AtomicType::uint128) + 1;

/// Returns the size of one element in bytes.
constexpr std::size_t size_of(AtomicType type) {
  constexpr std::uint8_t kSizes[kAtomicTypes] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16, 16, 32, 16, 16};
  return kSizes[static_cast<std::size_t>(type)];
}

struct AtomicCode {
  AtomicOp op = AtomicOp::read;
  AtomicType type = AtomicType::int8;
  bool fetch = false;  ///< the answer carries the previous values

  bool compares() const { return op >= AtomicOp::cswap; }
  /// Returns how many arrays of elements travel with the operation: none, the operands, or operands and
  /// comparands.
  std::size_t operands() const { return op == AtomicOp::read ? 0 : compares() ? 2 : 1; }

  std::uint16_t packed() const {
    return static_cast<std::uint16_t>(static_cast<unsigned>(op) | static_cast<unsigned>(type) << 5 |
                                      (fetch ? 1u << 10 : 0u));
  }
  /// Sets `code` from the bits that packed() returns. Returns false if there is no such operation. The
  /// operation `read`, and all operations for which compares() is true, exist only with `fetch`.
  static bool unpack(std::uint16_t bits, AtomicCode& code) {
    const unsigned op = bits & 31u;
    const unsigned type = bits >> 5 & 31u;
    if (op >= kAtomicOps || type >= kAtomicTypes || bits >> 11 != 0) return false;
    code = {static_cast<AtomicOp>(op), static_cast<AtomicType>(type), (bits >> 10 & 1u) != 0};
    return code.fetch || (code.op != AtomicOp::read && !code.compares());
  }
};

/// The largest number of target bytes of one part. It is a multiple of every element's size.
inline constexpr std::size_t kAtomicPart = 128;

/// Returns how many bytes at the target the next part covers. `left`: bytes not yet covered.
inline std::size_t atomic_part(std::uint64_t left) { return std::min<std::uint64_t>(left, kAtomicPart); }

/// Returns true if the lengths in the header of an atomic segment are consistent.
inline bool lengths_fit(const AtomicCode& code, std::uint64_t total, std::uint64_t length) {
  return total > 0 && total % size_of(code.type) == 0 && length == code.operands() * atomic_part(total);
}

}  // namespace cluster::wire
