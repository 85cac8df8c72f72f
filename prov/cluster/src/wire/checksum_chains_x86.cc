// CRC32C for every x86-64 processor since 2008: the crc32 instruction (SSE4.2). Each waits three cycles
// for the one before it, so long data is cut into three parts whose chains run side by side and are
// joined afterwards: 8 bytes a cycle at best.
//
// Joining: the carry-less product of a CRC and entry n of word_powers() is the CRC moved n words on. The
// CRC fills the lower half of its factor too, which makes it larger by another x^32, and the lower word
// of the product reads as smaller by x^64; going through the instruction as data, which reduces it,
// gives it the x^32 that are left. The entries for all lengths of a part that occur are kept.
#include <immintrin.h>

#include <array>
#include <cstring>

#include "wire/checksum_polynomial.h"
#include "wire/checksum_x86.h"

namespace cluster::wire::fast {
namespace {

constexpr std::size_t kPartWordsMax = 256;  ///< of one chain: 2 KB
constexpr std::size_t kChainedMin = 192;    ///< shorter data are not worth the joining

constexpr auto kPowers = word_powers<2 * kPartWordsMax + 1>();

template <typename Word = std::uint64_t>
Word load(const std::byte* at) {
  Word word;
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

[[gnu::target("sse4.2,pclmul")]] std::uint32_t chained(std::uint32_t state, const std::byte* at,
                                                       std::size_t size) {
  std::uint64_t crc = state;
  while (size >= kChainedMin) {
    std::size_t words = size / (3 * 8);
    if (words > kPartWordsMax) words = kPartWordsMax;
    crc = three_chains(crc, at, words);
    at += 3 * 8 * words;
    size -= 3 * 8 * words;
  }
  for (; size >= 8; size -= 8, at += 8) crc = _mm_crc32_u64(crc, load(at));
  std::uint32_t narrow = static_cast<std::uint32_t>(crc);
  if ((size & 4) != 0) narrow = _mm_crc32_u32(narrow, load<std::uint32_t>(at));
  at += size & 4;
  if ((size & 2) != 0) narrow = _mm_crc32_u16(narrow, load<std::uint16_t>(at));
  at += size & 2;
  if ((size & 1) != 0) narrow = _mm_crc32_u8(narrow, load<std::uint8_t>(at));
  return narrow;
}

}  // namespace cluster::wire::fast
