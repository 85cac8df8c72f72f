// CRC32C (Castagnoli), which iSCSI and SCTP also use. x86-64 processors with SSE4.2 and the arm64 processors
// of servers have an instruction for it. The checksum covers the header and the payload of each frame. UDP's
// own checksum is not enough: network hardware computes and checks it, so errors between the hardware and the
// application go unnoticed.
//
// This file also holds what the files checksum*.cc and their test share: the arithmetic, and the list of
// implementations that use special instructions. Each kind of processor has its own source file; the build
// chooses one.
//
// A CRC is a remainder. The bits of the data are the coefficients of a polynomial. The CRC is this polynomial
// times x^32, modulo P, which has degree 32. Numbers here are reflected, as they are on the wire and in the
// processor's instruction. This means that the lowest bit belongs to the highest power.
//
// Appending n zero bits to a message multiplies the polynomial of the message by x^n. So code that splits
// data into parts and joins their remainders needs powers of x modulo P. This file defines all of these
// powers, and the compiler computes them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/bytes.h"

namespace cluster::wire {

/// Computes the checksum of crc32c() with tables only. If the processor has no faster implementation,
/// crc32c() computes in the same way.
std::uint32_t crc32c_portable(std::uint32_t crc, ConstBytes data);

constexpr std::uint32_t kPolynomial = 0x82F63B78;  ///< Castagnoli, without its x^32

/// Returns value * x mod P.
consteval std::uint32_t times_x(std::uint32_t value) {
  return (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
}

/// Returns value / x mod P: the number for which times_x() returns `value`.
consteval std::uint32_t divided_by_x(std::uint32_t value) {
  const bool reduced = (value & 0x80000000) != 0;  // only the reduction by P sets this bit
  return reduced ? ((value ^ kPolynomial) << 1) | 1 : value << 1;
}

/// Entry n is x^(64 n - 33) mod P. Multiplying a CRC by entry n moves the CRC forward by n words of 64 bits:
/// it multiplies the CRC by x^(64 n). The multiplication itself contributes the missing x^33. One factor x is
/// due to reflection: the carry-less product of two reflected numbers represents their product times x. The
/// factor x^32 is due to the position of the entry. The entry fills only the lower half of a 64-bit factor.
/// In reflected numbers, such a factor represents the entry times x^32.
template <std::size_t kCount>
consteval std::array<std::uint32_t, kCount> word_powers() {
  std::array<std::uint32_t, kCount> powers{};
  std::uint32_t power = 0x80000000;  // x^0
  for (int bit = 0; bit < 33; ++bit) power = divided_by_x(power);
  for (std::uint32_t& entry : powers) {
    entry = power;
    for (int bit = 0; bit < 64; ++bit) power = times_x(power);
  }
  return powers;
}

namespace fast {

/// Continues the state of a CRC over `size` bytes. The state is the inverted checksum (see crc32c()).
using UpdateFunction = std::uint32_t (*)(std::uint32_t state, const std::byte* at, std::size_t size);

/// Copies the `size` bytes to `to`, and continues the state over the copy.
using CopyFunction = std::uint32_t (*)(std::uint32_t state, std::byte* to, const std::byte* at,
                                       std::size_t size);

struct Implementation {
  std::string_view name;
  UpdateFunction update;
  CopyFunction copy;
};

/// A CopyFunction in two steps. The second step finds in the nearest cache what the first one has written.
template <UpdateFunction kUpdate>
std::uint32_t copy_and_update(std::uint32_t state, std::byte* to, const std::byte* at, std::size_t size) {
  if (size > 0) std::memcpy(to, at, size);
  return kUpdate(state, to, size);
}

/// Returns the implementations whose instructions this processor has, with the fastest first. If the result
/// is empty, the processor can only use tables.
std::span<const Implementation> implementations();

/// The functions that crc32c() and crc32c_copy() use. At first, these are functions that find the fastest
/// implementation and store it in these variables.
extern std::atomic<UpdateFunction> update;
extern std::atomic<CopyFunction> copy;

}  // namespace fast

/// Continues the checksum `crc` over `data`. The checksum of no bytes is 0, and crc32c(crc32c(0, a), b) is
/// the checksum of `a` followed by `b`.
inline std::uint32_t crc32c(std::uint32_t crc, ConstBytes data) {
  return ~fast::update.load(std::memory_order_relaxed)(~crc, data.data(), data.size());
}

/// Copies `data` to `to`, which it must not overlap, and does what crc32c() does. It reads `data` once.
inline std::uint32_t crc32c_copy(std::uint32_t crc, std::byte* to, ConstBytes data) {
  return ~fast::copy.load(std::memory_order_relaxed)(~crc, to, data.data(), data.size());
}

}  // namespace cluster::wire
