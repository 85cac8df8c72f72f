#include "os/receive_queues.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>

#include "os/descriptor.h"

namespace cluster::os {

std::size_t receive_queues(const std::string& interface) {
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  ifreq request{};
  interface.copy(request.ifr_name, sizeof request.ifr_name - 1);
  request.ifr_data = reinterpret_cast<char*>(&channels);
  if (!socket || ioctl(socket.number(), SIOCETHTOOL, &request) != 0) return 1;
  return std::max<std::size_t>(1, std::size_t{channels.rx_count} + channels.combined_count);
}

}  // namespace cluster::os
