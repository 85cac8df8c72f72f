// CRC32C on x86-64. The provider checks at run time which instructions the processor has, because one build
// serves all nodes of a cluster.
//
// Chains use the crc32 instruction (SSE4.2) and carry-less multiplication (PCLMULQDQ), which the processors
// of all current servers have (checksum_chains.h).
//
// Folding needs a processor with wide vectors, and with carry-less multiplication in each 16-byte lane of a
// vector (VPCLMULQDQ with AVX-512). Folding is three times as fast as the chains for a frame of 1.5 KB. The
// method is described by Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
// Instruction" (Intel, 2009).
//
// Folding does not reduce intermediate results to 32 bits. It moves a block of 16 bytes forward by d words,
// and adds it to the block that begins there. The sum replaces both blocks, and leaves the same remainder
// modulo P. The earlier block is early * x^64 + late, where early and late are its two words. To move this
// block, folding multiplies early by x^(64 (d+1)) and late by x^(64 d), with the entries d+1 and d of
// word_powers(). A product of 64 and 32 bits fits into 16 bytes again.
//
// A product takes eight cycles, but a new product can begin in each cycle. So the code computes four sums of
// 64 bytes at the same time. In each turn of the loop, all sums move forward by 256 bytes. At the end, the 16
// lanes of the sums are joined: each lane is moved by its own distance to the position of the last lane. The
// last lane is multiplied like the others, by the powers for distance 0, so that it needs no special code.
// The crc32 instruction then processes the remaining 16 bytes as a message. This is the only reduction. By
// the definition of the CRC, the state before the data is added to the first four bytes of the data.
#include <immintrin.h>

#include <array>
#include <cstdint>

#include "wire/checksum.h"

#define CLUSTER_CRC_TARGET [[gnu::target("sse4.2,pclmul")]]

namespace cluster::wire::fast {
namespace {

struct X86Instructions {
  /// The instruction takes and returns 64 bits, and the upper half is 0. Converting to 32 bits would cost one
  /// more instruction each time.
  using State = std::uint64_t;

  CLUSTER_CRC_TARGET static State step(State crc, std::uint64_t word) { return _mm_crc32_u64(crc, word); }
  CLUSTER_CRC_TARGET static std::uint32_t step(std::uint32_t crc, std::uint32_t word) {
    return _mm_crc32_u32(crc, word);
  }
  CLUSTER_CRC_TARGET static std::uint32_t step(std::uint32_t crc, std::uint16_t word) {
    return _mm_crc32_u16(crc, word);
  }
  CLUSTER_CRC_TARGET static std::uint32_t step(std::uint32_t crc, std::uint8_t word) {
    return _mm_crc32_u8(crc, word);
  }
  CLUSTER_CRC_TARGET static std::uint64_t low_product(std::uint64_t one, std::uint64_t other) {
    const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<long long>(one)),
                                                 _mm_cvtsi64_si128(static_cast<long long>(other)), 0);
    return static_cast<std::uint64_t>(_mm_cvtsi128_si64(product));
  }
};

}  // namespace
}  // namespace cluster::wire::fast

#include "wire/checksum_chains.h"

namespace cluster::wire::fast {
namespace {

/// Computes the CRC with three chains of crc32 instructions. Needs SSE4.2 and PCLMULQDQ.
CLUSTER_CRC_TARGET std::uint32_t chained(std::uint32_t state, const std::byte* at, std::size_t size) {
  return Chains<X86Instructions>::update(state, at, size);
}

constexpr std::size_t kBlock = 64;  ///< bytes of a vector
constexpr std::size_t kSums = 4;
constexpr std::size_t kTurn = kSums * kBlock;
constexpr std::size_t kFoldedMin = kTurn;  ///< for shorter data, the chains are faster

constexpr std::size_t kTurnWords = kTurn / 8;
constexpr auto kPowers = word_powers<kTurnWords + 2>();

using BlockWords = std::array<std::uint64_t, kBlock / 8>;

/// Returns two powers of x for each lane of each sum. Multiplication by these powers moves the lane to the
/// position of the last lane of the last sum.
consteval std::array<BlockWords, kSums> make_joining() {
  std::array<BlockWords, kSums> joining{};
  std::size_t distance = kTurnWords;
  for (BlockWords& sum : joining) {
    for (std::size_t word = 0; word < sum.size(); word += 2) {
      distance -= 2;
      sum[word] = kPowers[distance + 1];
      sum[word + 1] = kPowers[distance];
    }
  }
  return joining;
}

alignas(kBlock) constexpr auto kJoining = make_joining();

[[gnu::target("avx512f")]] __m512i load(const void* at) { return _mm512_loadu_si512(at); }

/// Gives the blocks of the data, one after the other. If kCopies is true, copies them on the way.
template <bool kCopies>
struct Blocks {
  const std::byte* at;
  std::byte* to;

  [[gnu::target("avx512f")]] __m512i block(std::size_t i) const {
    const __m512i block = load(at + i * kBlock);
    if constexpr (kCopies) _mm512_storeu_si512(to + i * kBlock, block);
    return block;
  }
  void pass(std::size_t blocks) {
    at += blocks * kBlock;
    if constexpr (kCopies) to += blocks * kBlock;
  }
};

/// Moves `sum` forward by the distance that `powers` stand for, and adds it to `block`.
[[gnu::target("avx512f,vpclmulqdq")]] __m512i moved(__m512i sum, __m512i powers, __m512i block) {
  constexpr int kOfAllThree = 0x96;  // the truth table of a ^ b ^ c
  const __m512i early = _mm512_clmulepi64_epi128(sum, powers, 0x00);
  const __m512i late = _mm512_clmulepi64_epi128(sum, powers, 0x11);
  return _mm512_ternarylogic_epi64(early, late, block, kOfAllThree);
}

/// Returns the remainder of the sum of the four lanes.
[[gnu::target("avx512f,sse4.2")]] std::uint32_t reduced(__m512i sum) {
  alignas(kBlock) BlockWords words;
  _mm512_store_si512(words.data(), sum);
  const std::uint64_t early = _mm_crc32_u64(0, words[0] ^ words[2] ^ words[4] ^ words[6]);
  return static_cast<std::uint32_t>(_mm_crc32_u64(early, words[1] ^ words[3] ^ words[5] ^ words[7]));
}

/// Continues the state over `count` whole blocks, at least four.
template <bool kCopies>
[[gnu::target("avx512f,vpclmulqdq,sse4.2")]] std::uint32_t fold(std::uint32_t state, Blocks<kCopies> data,
                                                                std::size_t count) {
  const __m512i turn = _mm512_set4_epi64(kPowers[kTurnWords], kPowers[kTurnWords + 1], kPowers[kTurnWords],
                                         kPowers[kTurnWords + 1]);
  const __m512i before = _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(state)));
  __m512i first = _mm512_xor_si512(data.block(0), before);
  __m512i second = data.block(1);
  __m512i third = data.block(2);
  __m512i fourth = data.block(3);
  data.pass(kSums);
  count -= kSums;
  for (; count >= kSums; count -= kSums, data.pass(kSums)) {
    first = moved(first, turn, data.block(0));
    second = moved(second, turn, data.block(1));
    third = moved(third, turn, data.block(2));
    fourth = moved(fourth, turn, data.block(3));
  }
  for (; count > 0; --count, data.pass(1)) {
    const __m512i last = moved(first, turn, data.block(0));
    first = second;
    second = third;
    third = fourth;
    fourth = last;
  }
  __m512i joined = moved(first, load(kJoining[0].data()), _mm512_setzero_si512());
  joined = moved(second, load(kJoining[1].data()), joined);
  joined = moved(third, load(kJoining[2].data()), joined);
  return reduced(moved(fourth, load(kJoining[3].data()), joined));
}

/// Computes the CRC by folding in vectors of 64 bytes. Short data is computed with chains. Needs AVX-512F and
/// VPCLMULQDQ in addition to what chained() needs.
std::uint32_t folded(std::uint32_t state, const std::byte* at, std::size_t size) {
  if (size < kFoldedMin) return chained(state, at, size);
  const std::size_t whole = size - size % kBlock;
  return chained(fold(state, Blocks<false>{at, nullptr}, whole / kBlock), at + whole, size - whole);
}

/// Does the same, and stores each vector that it has loaded.
std::uint32_t folded_copy(std::uint32_t state, std::byte* to, const std::byte* at, std::size_t size) {
  if (size < kFoldedMin) return copy_and_update<chained>(state, to, at, size);
  const std::size_t whole = size - size % kBlock;
  return copy_and_update<chained>(fold(state, Blocks<true>{at, to}, whole / kBlock), to + whole, at + whole,
                                  size - whole);
}

constexpr std::array<Implementation, 2> kImplementations{
    {{"folded", folded, folded_copy}, {"chained", chained, copy_and_update<chained>}}};

}  // namespace

std::span<const Implementation> implementations() {
  __builtin_cpu_init();
  const std::span<const Implementation> all(kImplementations);
  if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("pclmul")) return {};
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
  return wide ? all : all.subspan(1);
}

}  // namespace cluster::wire::fast
