// Tells whether the kernel knows the hardware address behind an IP address. Some calls of libibverbs make the
// kernel resolve an address, and wait up to one second for the answer. A caller that must not wait asks this
// function before such a call.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace cluster::os {

/// Returns false if the kernel would have to wait for the hardware address of the next host on the way to
/// `ip`. In this case, this function makes the kernel resolve the address, without waiting for it. Returns
/// true if the kernel cannot tell (before Linux 5.0). `ip`: 4 or 16 bytes. `interface`: the index of the
/// interface that packets to `ip` leave.
bool hardware_address_known(ConstBytes ip, std::uint32_t interface);

}  // namespace cluster::os
