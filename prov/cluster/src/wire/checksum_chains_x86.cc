// CRC32C for every x86-64 processor since 2008: the crc32 instruction (SSE4.2), in chains.
#include <immintrin.h>

#include <cstdint>

#include "wire/checksum_x86.h"

#define CLUSTER_CRC_TARGET [[gnu::target("sse4.2,pclmul")]]

namespace cluster::wire::fast {
namespace {

struct X86Instructions {
  /// The instruction takes and gives 64 bits, of which the upper half is 0: narrowing would cost one each time.
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

CLUSTER_CRC_TARGET std::uint32_t chained(std::uint32_t state, const std::byte* at, std::size_t size) {
  return Chains<X86Instructions>::update(state, at, size);
}

}  // namespace cluster::wire::fast
