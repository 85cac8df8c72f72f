// Multicast by IP. The kernel joins groups, on the interface that has the endpoint's name. What the endpoint sends to a group leaves
// by its UDP socket, so the source is the endpoint's name, whatever link it has.
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
