// CRC32C (Castagnoli), the checksum of iSCSI and SCTP: one instruction on every x86-64 since 2008 and on arm64 servers. It covers header and
// payload of each frame. Network hardware computes and checks UDP's own checksum, so errors between hardware and application would
// stay undetected.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace cluster::wire {

/// Continues `crc` over `data`; begin with 0. crc32c(crc32c(0, a), b) == crc32c(0, a b).
std::uint32_t crc32c(std::uint32_t crc, ConstBytes data);

/// The same by tables alone: the fallback of crc32c() on a processor without a faster way.
std::uint32_t crc32c_portable(std::uint32_t crc, ConstBytes data);

}  // namespace cluster::wire
