// The arithmetic behind CRC32C. A CRC is a remainder: the data, read as a polynomial whose
// coefficients are bits, modulo P of degree 32. Numbers here are reflected, as the wire and the
// processor's instruction have them: the lowest bit belongs to the highest power.
//
// Appending n bits to a message multiplies what stood before them by x^n, so whatever cuts data into
// parts and joins their remainders needs powers of x modulo P. All of them come from this file, made
// by the compiler; private to the files checksum*.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace cluster::wire {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  ///< Castagnoli, without its x^32

/// value * x mod P.
consteval std::uint32_t times_x(std::uint32_t value) {
  return (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
}

/// value / x mod P: what times_x() turns into `value`.
consteval std::uint32_t divided_by_x(std::uint32_t value) {
  const bool reduced = (value & 0x80000000) != 0;  // P, and nothing else, brings in a 1 there
  return reduced ? ((value ^ kPolynomial) << 1) | 1 : value << 1;
}

/// Entry n is x^(64 n - 33) mod P: what is multiplied with it moves on by n words of 64 bits. The 33
/// that lack are gained by multiplying. 1, because the product of two reflected numbers without carries
/// reads as theirs times x. 32, because the entry fills only the lower half of a factor of 64 bits,
/// which in reflected numbers reads as the entry times x^32.
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

}  // namespace cluster::wire
