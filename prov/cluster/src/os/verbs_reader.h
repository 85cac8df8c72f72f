// Opens an RDMA device through libibverbs. Reliable queue pairs (RC) of the device read the memory of peers.
#pragma once

#include <memory>
#include <string>

#include "base/address.h"
#include "link/read_device.h"
#include "os/interfaces.h"

namespace cluster::os {

/// Opens the device whose table of GIDs has the RoCE version 2 GID of `address`, an address of `interface`.
/// If that fails, returns null and sets `reason`. `library`: the file name of libibverbs. `prefix_bits`: the
/// length of the prefix that the GIDs of the device's subnet share; 0: unknown, so the device reaches all
/// GIDs.
std::unique_ptr<link::ReadDevice> open_verbs_reader(const std::string& library, const Interface& interface,
                                                    const SocketAddress& address, unsigned prefix_bits,
                                                    std::string& reason);

}  // namespace cluster::os
