// What the kernel knows about the next host on the way to an IP address: the router that its routes choose,
// or the host with this address itself.
//
// Some calls of libibverbs make the kernel resolve a hardware address, and wait up to one second for the
// answer. A caller that must not wait asks here before such a call.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "os/packet_headers.h"

namespace cluster::os {

struct NextHop {
  enum class State : std::uint8_t {
    untold,      ///< the kernel does not say (before Linux 5.0), or it has no route
    unresolved,  ///< the kernel would first have to ask for the hardware address
    resolved,    ///< a packet would leave at once
  };

  State state = State::untold;
  std::optional<HardwareAddress> hardware_address = std::nullopt;  ///< if it is resolved, and there is one
};

/// `ip`: 4 or 16 bytes. `interface`: the index of the interface that packets to `ip` leave.
NextHop next_hop(ConstBytes ip, std::uint32_t interface);

/// Returns false if the kernel would have to wait for the hardware address of the next host. In this case,
/// this function makes the kernel resolve the address, without waiting for it. Returns true if the kernel does
/// not say.
bool hardware_address_known(ConstBytes ip, std::uint32_t interface);

}  // namespace cluster::os
