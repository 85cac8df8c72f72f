// Asks the driver of a network interface questions (SIOCETHTOOL).
#pragma once

#include <linux/if.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "os/descriptor.h"

namespace cluster::os {

/// Opens a socket for questions to drivers.
inline Descriptor ethtool_socket() { return Descriptor(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)); }

/// Asks the driver of `interface` the question `command`, and stores the reply in `answer`. Returns false if
/// the driver does not answer.
template <typename Answer>
bool ask_driver(const Descriptor& socket, const std::string& interface, std::uint32_t command,
                Answer& answer) {
  answer.cmd = command;
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_data = reinterpret_cast<char*>(&answer);
  return socket && ioctl(socket.number(), SIOCETHTOOL, &request) == 0;
}

}  // namespace cluster::os
