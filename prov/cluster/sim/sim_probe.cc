#include "sim/sim_probe.h"

#include "sim/allocation_meter.h"

namespace cluster::sim {

link::ProcessProbe::Answer SimProbe::ask(const SocketAddress& peer) {
  const AllocationMeter::Scope uncounted(nullptr);
  const HostNumber to = host_of(peer);
  if (!network_.connects(host_, to) || !network_.connects(to, host_) || !network_.port(to).powered)
    return Answer::none;
  const auto [asked, first] = asked_.try_emplace(to, 0);
  if (first) return Answer::none;
  const bool same = asked->second == 0 || asked->second == incarnations_.of(to);
  if (!incarnations_.alive(to) || !same) {
    asked_.erase(asked);
    return Answer::ended;
  }
  asked->second = incarnations_.of(to);
  return Answer::exists;
}

}  // namespace cluster::sim
