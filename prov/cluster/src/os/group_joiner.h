// Multicast by IP: groups are joined by the kernel, on the interface that names the endpoint. What is sent to a group leaves by
// the endpoint's UDP socket, so its source is the endpoint's name, whatever link the endpoint has.
#pragma once

#include <memory>

#include "base/environment.h"
#include "link/multicast.h"
#include "os/udp_port.h"

namespace cluster::os {

/// `interface`: index of the one that has the port's address.
std::unique_ptr<link::MulticastJoiner> open_group_joiner(std::shared_ptr<UdpPort> port, int interface,
                                                         const Environment& environment);

}  // namespace cluster::os
