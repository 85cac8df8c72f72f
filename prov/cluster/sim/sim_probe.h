// What the kernel of a peer's host says about the peer's process (link/process_probe.h): that it exists,
// stopped or not, or that it has ended. The kernel says nothing while the host is down or cut off.
#pragma once

#include <unordered_map>

#include "link/process_probe.h"
#include "sim/incarnations.h"
#include "sim/sim_network.h"

namespace cluster::sim {

class SimProbe final : public link::ProcessProbe {
 public:
  SimProbe(SimNetwork& network, const Incarnations& incarnations, HostNumber host, bool answered)
      : network_(network), incarnations_(incarnations), host_(host), answered_(answered) {}

  bool answered_here() const override { return answered_; }
  Answer ask(const SocketAddress& peer) override;
  void end(const SocketAddress& peer) override { asked_.erase(host_of(peer)); }

 private:
  SimNetwork& network_;
  const Incarnations& incarnations_;
  HostNumber host_;
  bool answered_;
  /// The peers that were asked. The incarnation that exists, as far as its kernel has answered; 0: the
  /// question is on its way.
  std::unordered_map<HostNumber, std::uint32_t> asked_;
};

}  // namespace cluster::sim
