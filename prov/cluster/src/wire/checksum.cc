// Two ways to the same number. The portable one looks eight bytes up in eight tables at a time. The
// fast one uses the processor's crc32 instruction; since each waits three cycles for the one before
// it, long data is cut into three parts whose chains run side by side and are joined afterwards.
//
// Joining: a CRC is a remainder modulo the polynomial P, so appending n bits of data multiplies what
// came before by x^n. The carry-less product of a CRC and x^(n-33) mod P, fed as data to the crc32
// instruction (which reduces modulo P, and brings in the missing factor: 32 for the reduction, 1 for
// the product of reflected numbers), is the CRC moved n bits on. The powers for all part lengths
// that occur are a table.
#include "wire/checksum.h"

#include <array>
#include <cstring>

#include "wire/endian.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cluster::wire {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  ///< Castagnoli, reflected

/// value * x mod P, reflected.
constexpr std::uint32_t times_x(std::uint32_t value) {
  return (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
}

using Table = std::array<std::uint32_t, 256>;

constexpr std::array<Table, 8> make_tables() {
  std::array<Table, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = times_x(crc);
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < tables.size(); ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t shorter = tables[k - 1][byte];
      tables[k][byte] = (shorter >> 8) ^ tables[0][shorter & 0xff];
    }
  }
  return tables;
}

constexpr std::array<Table, 8> kTables = make_tables();

std::uint32_t by_tables(std::uint32_t crc, const std::byte* at, std::size_t size) {
  for (; size >= 8; size -= 8, at += 8) {
    Le64 field;
    std::memcpy(&field, at, sizeof field);
    const std::uint64_t word = field ^ crc;
    crc = 0;
    for (std::size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][(word >> (8 * k)) & 0xff];
  }
  for (; size > 0; --size, ++at) {
    crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<std::uint32_t>(*at)) & 0xff];
  }
  return crc;
}

#if defined(__x86_64__)

#define CLUSTER_FAST __attribute__((target("sse4.2,pclmul")))

constexpr std::size_t kPartWordsMax = 256;  ///< of one chain: 2 KB
constexpr std::size_t kPartWordsMin = 8;    ///< shorter ones are not worth the joining

/// Entry n: x^(64 n - 33) mod P, reflected.
constexpr std::array<std::uint32_t, 2 * kPartWordsMax + 1> make_powers() {
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

CLUSTER_FAST std::uint64_t moved(std::uint64_t crc, std::size_t words) {
  const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<long long>(crc)),
                                               _mm_cvtsi64_si128(kPowers[words]), 0);
  return _mm_crc32_u64(0, static_cast<std::uint64_t>(_mm_cvtsi128_si64(product)));
}

CLUSTER_FAST std::uint64_t three_chains(std::uint64_t first, const std::byte* at, std::size_t words) {
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

CLUSTER_FAST std::uint32_t by_instruction(std::uint32_t start, const std::byte* at, std::size_t size) {
  std::uint64_t crc = start;
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

bool has_instruction() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

#else

std::uint32_t by_instruction(std::uint32_t crc, const std::byte* at, std::size_t size) {
  return by_tables(crc, at, size);
}

bool has_instruction() { return false; }

#endif

const bool kHasInstruction = has_instruction();

}  // namespace

std::uint32_t crc32c(std::uint32_t crc, ConstBytes data) {
  if (!kHasInstruction) return crc32c_portable(crc, data);
  return ~by_instruction(~crc, data.data(), data.size());
}

std::uint32_t crc32c_portable(std::uint32_t crc, ConstBytes data) {
  return ~by_tables(~crc, data.data(), data.size());
}

}  // namespace cluster::wire
