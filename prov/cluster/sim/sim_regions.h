// Regions of other processes that an engine reaches alone, as on one node: a pair of hosts may be such a
// pair, whatever the network between them does. Most accesses copy at once; some are left to the target. Of
// a read a part of the bytes is copied then, as if the kernel had not let all of them through. Of a write
// nothing is: the oracle takes a write without report for complete when it sees its bytes, and the target
// would write them again.
#pragma once

#include <vector>

#include "protocol/region_table.h"
#include "shm/local_memory.h"
#include "sim/seeded_random.h"
#include "sim/sim_network.h"

namespace cluster::sim {

class SimRegions {
 public:
  SimRegions(std::uint64_t seed, std::uint32_t hosts) : seed_(seed), processes_(hosts) {}

  /// A process of the host begins, with these regions, or ends (null).
  void set(HostNumber host, protocol::RegionTable* regions);
  std::unique_ptr<shm::RegionConnector> connector(HostNumber from);

 private:
  class Connector;
  class Reached;
  struct Process {
    protocol::RegionTable* regions = nullptr;
    std::uint32_t number = 0;  ///< of those that the host has had
  };

  std::uint64_t seed_;
  std::vector<Process> processes_;
};

}  // namespace cluster::sim
