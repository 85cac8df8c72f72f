// Between which hosts a rail carries nothing now: in one direction or both, for all frames or for all but
// those of the EtherType path.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/packet.h"

namespace cluster::sim {

/// A frame on this rail is lost if its sender is marked in `from`, and its receiver is marked in `to`.
struct Cut {
  RailNumber rail = 0;
  std::vector<bool> from;
  std::vector<bool> to;
  bool spares_ethertype = false;
};

class Partitions {
 public:
  void add(Cut cut) { cuts_.push_back(std::move(cut)); }
  void remove(RailNumber rail) {
    std::erase_if(cuts_, [rail](const Cut& cut) { return cut.rail == rail; });
  }
  /// `all`: no rail carries anything, because the switches reboot.
  void stop_all(bool all) { all_ = all; }
  void clear() {
    cuts_.clear();
    all_ = false;
  }
  bool stops(const Packet& packet) const {
    return all_ || std::any_of(cuts_.begin(), cuts_.end(), [&](const Cut& cut) {
             const bool spared = cut.spares_ethertype && packet.ethertype;
             return !spared && cut.rail == packet.rail && marked(cut.from, packet.from) &&
                    marked(cut.to, packet.to);
           });
  }

 private:
  /// Hosts beside the cluster, such as relays, are never cut off.
  static bool marked(const std::vector<bool>& hosts, HostNumber host) {
    return host < hosts.size() && hosts[host];
  }

  std::vector<Cut> cuts_;
  bool all_ = false;
};

}  // namespace cluster::sim
