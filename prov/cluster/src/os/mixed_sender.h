// How the packet link sends: frames whose destination has a known hardware address are written to the wire,
// all others leave by the endpoint's UDP socket, and the kernel routes and resolves. So do those to names of
// this host, which no wire would bring back.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/address.h"
#include "base/counters.h"
#include "link/link.h"
#include "os/packet_sender.h"
#include "os/udp_port.h"
#include "os/udp_sender.h"

namespace cluster::os {

class MixedSender {
 public:
  /// `own`: every address of this host.
  MixedSender(std::unique_ptr<PacketSender> raw, std::shared_ptr<UdpPort> port,
              std::vector<SocketAddress> own, Counters& counters);
  MixedSender(const MixedSender&) = delete;
  MixedSender& operator=(const MixedSender&) = delete;

  /// As Link::send_burst.
  std::size_t send(std::span<const link::OutFrame> frames);

  bool is_own(const SocketAddress& name) const;

 private:
  bool goes_raw(const link::Path& path) const { return path.mac_known && !is_own(path.to); }

  std::unique_ptr<PacketSender> raw_;
  UdpSender socket_;
  std::vector<SocketAddress> own_;
};

}  // namespace cluster::os
