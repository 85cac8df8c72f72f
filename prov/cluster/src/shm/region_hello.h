// The two messages by which an initiator and a target begin: each carries a descriptor of shared memory. They
// travel between processes of one host and one version, so their integers are the host's.
#pragma once

#include <cstdint>
#include <string>

#include "base/address.h"
#include "os/process_memory.h"

namespace cluster::shm {

/// From the initiator, with its UsePage.
struct RegionHello {
  static constexpr std::uint64_t kMagic = 0x6e6f6967652d6c63;  // "cl-egion"

  std::uint64_t magic = kMagic;
};

/// The target's answer, with its table.
struct RegionWelcome {
  static constexpr std::uint64_t kMagic = 0x6f636c65772d6c63;  // "cl-welco"

  std::uint64_t magic = kMagic;
  os::GuardMark guard{};            ///< of the target's process
  std::uint32_t reads_served = 0;   ///< by the target's library, all of them
  std::uint32_t writes_served = 0;  ///< likewise
};
static_assert(sizeof(RegionWelcome) == 32, "no padding: every byte that is sent is set");

/// The abstract socket name under which an endpoint's regions are found.
std::string region_socket_name(const SocketAddress& endpoint);

}  // namespace cluster::shm
