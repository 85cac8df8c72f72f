// The x86-64 way: the crc32 instruction (SSE4.2). Each waits three cycles for the one before it, so
// long data is cut into three parts whose chains run side by side and are joined afterwards.
//
// Joining: a CRC is a remainder modulo the polynomial P, so appending n bits of data multiplies what
// came before by x^n. The carry-less product of a CRC and x^(n-33) mod P, fed as data to the crc32
// instruction (which reduces modulo P, and brings in the missing factor: 32 for the reduction, 1 for
// the product of reflected numbers), is the CRC moved n bits on. The powers for all part lengths
// that occur are a table.
#include <immintrin.h>

#include <array>
#include <cstring>

#include "wire/checksum_fast.h"

namespace cluster::wire::fast {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  ///< Castagnoli, reflected

/// value * x mod P, reflected.
consteval std::uint32_t times_x(std::uint32_t value) {
  return (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
}

constexpr std::size_t kPartWordsMax = 256;  ///< of one chain: 2 KB
constexpr std::size_t kPartWordsMin = 8;    ///< shorter ones are not worth the joining

/// Entry n: x^(64 n - 33) mod P, reflected.
consteval std::array<std::uint32_t, 2 * kPartWordsMax + 1> make_powers() {
  std::array<std::uint32_t, 2 * kPartWordsMax + 1> powers{};
  std::uint32_t power = 0x80000000;  // x^0
  for (int bit = 0; bit < 31; ++bit) power = times_x(power);
  for (std::size_t n = 1; n < powers.size(); ++n) {
    powers[n] = power;
    for (int bit = 0; bit < 64; ++bit) power = times_x(power);
  }
  return powers;
}

constexpr auto kPowers = make_powers();

std::uint64_t load(const std::byte* at) {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

[[gnu::target("sse4.2,pclmul")]] std::uint64_t moved(std::uint64_t crc, std::size_t words) {
  const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<long long>(crc)),
                                               _mm_cvtsi64_si128(kPowers[words]), 0);
  return _mm_crc32_u64(0, static_cast<std::uint64_t>(_mm_cvtsi128_si64(product)));
}

[[gnu::target("sse4.2,pclmul")]] std::uint64_t three_chains(std::uint64_t first, const std::byte* at,
                                                            std::size_t words) {
  std::uint64_t second = 0;
  std::uint64_t third = 0;
  const std::size_t part = words * 8;
  for (const std::byte* end = at + part; at != end; at += 8) {
    first = _mm_crc32_u64(first, load(at));
    second = _mm_crc32_u64(second, load(at + part));
    third = _mm_crc32_u64(third, load(at + 2 * part));
  }
  return moved(first, 2 * words) ^ moved(second, words) ^ third;
}

}  // namespace

bool available() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

[[gnu::target("sse4.2,pclmul")]] std::uint32_t continued(std::uint32_t state, const std::byte* at,
                                                         std::size_t size) {
  std::uint64_t crc = state;
  while (size >= 3 * 8 * kPartWordsMin) {
    std::size_t words = size / (3 * 8);
    if (words > kPartWordsMax) words = kPartWordsMax;
    crc = three_chains(crc, at, words);
    at += 3 * 8 * words;
    size -= 3 * 8 * words;
  }
  for (; size >= 8; size -= 8, at += 8) crc = _mm_crc32_u64(crc, load(at));
  std::uint32_t narrow = static_cast<std::uint32_t>(crc);
  for (; size > 0; --size, ++at) narrow = _mm_crc32_u8(narrow, static_cast<std::uint8_t>(*at));
  return narrow;
}

}  // namespace cluster::wire::fast
