// Takes what arrived at the endpoint's UDP socket. Every buffer holds the largest super-datagram
// (UDP_GRO), so their number is small; they are reused by the next call.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/counters.h"
#include "link/link.h"
#include "os/udp_port.h"

namespace cluster::os {

class UdpReceiver {
 public:
  UdpReceiver(std::shared_ptr<UdpPort> port, std::size_t buffers, Counters& counters);

  /// As Link::receive_burst.
  std::size_t receive(std::span<link::InFrame> frames);

 private:
  int take(std::size_t wanted);

  std::shared_ptr<UdpPort> port_;
  Counters& counters_;
  std::unique_ptr<std::byte[]> memory_;
  std::vector<sockaddr_storage> names_;
  std::vector<iovec> iovecs_;
  std::vector<mmsghdr> headers_;
  /// How many to ask for: asking for one more than there are costs as much as a datagram, so this
  /// follows what came last.
  std::size_t expected_ = 1;
};

}  // namespace cluster::os
