// Sends bursts through the endpoint's UDP socket: the kernel routes and resolves. Runs of equal
// frames to one peer leave as one super-datagram where the kernel can cut it (UDP_SEGMENT).
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "base/counters.h"
#include "link/link.h"
#include "os/send_batch.h"
#include "os/udp_port.h"

namespace cluster::os {

class UdpSender {
 public:
  UdpSender(std::shared_ptr<UdpPort> port, Counters& counters);

  /// As Link::send_burst.
  std::size_t send(std::span<const link::OutFrame> frames);

 private:
  struct Slot {
    sockaddr_storage address;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(std::uint16_t))> control;
  };

  void open_message(std::span<const link::OutFrame> run, Slot& slot);

  std::shared_ptr<UdpPort> port_;
  Counters& counters_;
  SendBatch batch_;
  std::array<Slot, link::kBurstMax> slots_;
};

}  // namespace cluster::os
