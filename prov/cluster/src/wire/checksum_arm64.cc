// CRC32C for arm64 processors that have instructions for CRC32C and for carry-less products. Both kinds of
// instructions are optional in the first version of the architecture. Servers have these instructions, but
// small boards may lack them. So this file asks the kernel at run time.
#include <arm_acle.h>
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>

#include <array>
#include <cstdint>

#include "wire/checksum.h"

#define CLUSTER_CRC_TARGET [[gnu::target("+crc+crypto")]]

namespace cluster::wire::fast {
namespace {

struct Arm64Instructions {
  using State = std::uint32_t;

  CLUSTER_CRC_TARGET static State step(State crc, std::uint64_t word) { return __crc32cd(crc, word); }
  CLUSTER_CRC_TARGET static State step(State crc, std::uint32_t word) { return __crc32cw(crc, word); }
  CLUSTER_CRC_TARGET static State step(State crc, std::uint16_t word) { return __crc32ch(crc, word); }
  CLUSTER_CRC_TARGET static State step(State crc, std::uint8_t word) { return __crc32cb(crc, word); }
  CLUSTER_CRC_TARGET static std::uint64_t low_product(std::uint64_t one, std::uint64_t other) {
    return static_cast<std::uint64_t>(vmull_p64(one, other));
  }
};

}  // namespace
}  // namespace cluster::wire::fast

#include "wire/checksum_chains.h"

namespace cluster::wire::fast {
namespace {

constexpr UpdateFunction kChained = Chains<Arm64Instructions>::update;
constexpr std::array<Implementation, 1> kImplementations{{{"chained", kChained, copy_and_update<kChained>}}};

}  // namespace

std::span<const Implementation> implementations() {
  constexpr unsigned long kNeeded = HWCAP_CRC32 | HWCAP_PMULL;
  if ((getauxval(AT_HWCAP) & kNeeded) != kNeeded) return {};
  return kImplementations;
}

}  // namespace cluster::wire::fast
