// Addresses for names in this host's network namespace (rings, doorbells, region tables), which test programs that run at
// once must not share.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "base/address.h"

namespace cluster::test {

/// A loopback address of this process alone, whose number it carries.
inline SocketAddress process_address(std::uint16_t port) {
  const pid_t process = ::getpid();
  const std::byte ip[] = {std::byte{127}, static_cast<std::byte>(process >> 16),
                          static_cast<std::byte>(process >> 8), static_cast<std::byte>(process)};
  return SocketAddress::v4(ip, port);
}

}  // namespace cluster::test
