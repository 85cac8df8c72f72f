#include "os/receive_queues.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>

#include "os/descriptor.h"

namespace cluster::os {

namespace {

template <typename Answer>
bool ask_driver(const std::string& interface, Answer& answer) {
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  interface.copy(request.ifr_name, sizeof request.ifr_name - 1);
  request.ifr_data = reinterpret_cast<char*>(&answer);
  return socket && ioctl(socket.number(), SIOCETHTOOL, &request) == 0;
}

}  // namespace

std::size_t receive_queues(const std::string& interface) {
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  ethtool_rxnfc rings{};  // older drivers answer this one only
  rings.cmd = ETHTOOL_GRXRINGS;
  std::size_t count = 0;
  if (ask_driver(interface, channels)) {
    count = std::size_t{channels.rx_count} + channels.combined_count;
  } else if (ask_driver(interface, rings)) {
    count = static_cast<std::size_t>(rings.data);
  }
  return std::max<std::size_t>(1, count);
}

}  // namespace cluster::os
