// CRC32C (Castagnoli), the checksum of iSCSI and SCTP: one instruction on every x86-64 since 2008 and on
// arm64 servers. It covers header and payload of each frame. Network hardware computes and checks UDP's own
// checksum, so that checksum misses errors between hardware and application.
//
// This file also holds what the files checksum*.cc and their test share: the arithmetic, and the list of
// implementations that use special instructions. Each kind of processor has its own source file; the build
// chooses one.
//
// A CRC is a remainder: the data, read as a polynomial whose coefficients are bits, modulo P of degree 32.
// Numbers here are reflected, as the wire and the processor's instruction have them: the lowest bit belongs
// to the highest power.
//
// Appending n bits to a message multiplies what stood before them by x^n. So code that cuts data into parts
// and joins their remainders needs powers of x modulo P. This file defines all of them; the compiler computes
// them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/bytes.h"

namespace cluster::wire {

/// Continues `crc` over `data`; begin with 0. crc32c(crc32c(0, a), b) == crc32c(0, a b).
std::uint32_t crc32c(std::uint32_t crc, ConstBytes data);

/// Computes the same by tables alone: the fallback of crc32c() on a processor without a faster
/// implementation.
std::uint32_t crc32c_portable(std::uint32_t crc, ConstBytes data);

constexpr std::uint32_t kPolynomial = 0x82F63B78;  ///< Castagnoli, without its x^32

/// value * x mod P.
consteval std::uint32_t times_x(std::uint32_t value) {
  return (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
}

/// value / x mod P: what times_x() turns into `value`.
consteval std::uint32_t divided_by_x(std::uint32_t value) {
  const bool reduced = (value & 0x80000000) != 0;  // only the reduction by P sets this bit
  return reduced ? ((value ^ kPolynomial) << 1) | 1 : value << 1;
}

/// Entry n is x^(64 n - 33) mod P. Multiplying a CRC by it moves the CRC on by n words of 64 bits. The
/// multiplication itself contributes the missing x^33. One x comes from reflection: the carry-less product of
/// two reflected numbers reads as their product times x. The other x^32 comes from the position: the entry
/// fills only the lower half of a factor of 64 bits, which in reflected numbers reads as the entry times
/// x^32.
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

/// Moves the inner state on over `size` bytes. Does not invert it before or after.
using UpdateFunction = std::uint32_t (*)(std::uint32_t state, const std::byte* at, std::size_t size);

struct Implementation {
  std::string_view name;
  UpdateFunction update;
};

/// Returns the implementations whose instructions this processor has, the fastest first. Empty if only tables
/// are left.
std::span<const Implementation> implementations();

}  // namespace fast
}  // namespace cluster::wire
