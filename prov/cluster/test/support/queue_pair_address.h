// The address of a queue pair of a test node. Its GID is 10.0.0.NODE, mapped to IPv6 as in RoCE version 2.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/address.h"

namespace cluster::test {

inline SocketAddress queue_pair(int node, std::uint32_t number) {
  std::byte gid[SocketAddress::kGidBytes]{};
  gid[10] = gid[11] = std::byte{0xff};
  gid[12] = std::byte{10};
  gid[15] = static_cast<std::byte>(node);
  return SocketAddress::queue_pair(gid, number);
}

}  // namespace cluster::test
