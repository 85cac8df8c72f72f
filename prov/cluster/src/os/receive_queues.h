// Into how many queues an interface sorts what it receives. Devices that have several spread IP traffic over
// them by addresses and ports, and put everything they do not know into the first: there such frames overtake
// others or are overtaken, and one processor takes them all in.
#pragma once

#include <cstddef>
#include <string>

namespace cluster::os {

/// Of the interface with this name in this network namespace; 1 for drivers that know of no more.
std::size_t receive_queues(const std::string& interface);

}  // namespace cluster::os
