// The number of queues into which an interface sorts what it receives. Devices that have several spread IP
// traffic over them by addresses and ports, and put unknown EtherTypes into the first: there such frames
// overtake others or are overtaken, and one processor takes them all in.
#pragma once

#include <cstddef>
#include <string>

namespace cluster::os {

/// Of the interface with this name in this network namespace; 1 if the driver reports none.
std::size_t receive_queues(const std::string& interface);

}  // namespace cluster::os
