// How a packet link without a ring sends: as the one with a ring (os/mixed_sender.h), but what arrives by a
// socket shows no hardware addresses, so they come from the kernel (os/neighbours.h).
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/environment.h"
#include "link/link.h"
#include "os/neighbours.h"
#include "os/packet_sender.h"
#include "os/udp_port.h"
#include "os/udp_sender.h"

namespace cluster::os {

class NeighbourSender {
 public:
  /// `index`: of the interface that `raw` sends by.
  NeighbourSender(std::unique_ptr<PacketSender> raw, int index, std::shared_ptr<UdpPort> port,
                  const Environment& environment);

  /// As Link::send_burst.
  std::size_t send(std::span<const link::OutFrame> frames);

 private:
  Clock& clock_;
  std::unique_ptr<PacketSender> raw_;
  UdpSender socket_;
  Neighbours neighbours_;
};

}  // namespace cluster::os
