// Regions of other processes that an engine can access alone, as on one node. Some pairs of hosts can do
// that, whatever the network between them does. Most accesses copy all bytes at once, but some are left to
// the target. In this case half of the bytes of a read are copied first, as if the kernel had refused the
// rest. Of a write no byte is copied. For as soon as the oracle sees all bytes of an unreported write, it
// regards the write as over. If the target then wrote some of the bytes again, this would be a second
// execution.
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

  /// A process of the host begins, with these regions. Null: the process ends.
  void set(HostNumber host, protocol::RegionTable* regions);
  std::unique_ptr<shm::RegionConnector> connector(HostNumber from);

 private:
  class Connector;
  class Reached;
  struct Process {
    protocol::RegionTable* regions = nullptr;
    std::uint32_t number = 0;  ///< counts the processes that the host has had
  };

  std::uint64_t seed_;
  std::vector<Process> processes_;
};

}  // namespace cluster::sim
