// Hosts, the network between them, and the oracles that watch them. Each simulation and each measurement has
// a SimCluster. It knows nothing of faults or verdicts.
#pragma once

#include <memory>
#include <vector>

#include "sim/sim_host.h"

namespace cluster::sim {

class SimCluster {
 public:
  /// `beside`: how many hosts are in the network, but not in the cluster.
  /// `joins_devices`: the RDMA devices of the hosts carry frames, too.
  SimCluster(std::uint64_t run_seed, std::uint32_t host_count, const WorkloadPlan& workload,
             RailNumber rails = 1, std::uint32_t beside = 0, bool joins_devices = false);

  /// Adds the next host. Its number is the number of hosts before it. The caller starts its process later.
  SimHost& add_host(const HostProfile& profile);
  std::uint32_t size() const { return size_; }
  Counters counters() const;
  /// Lets events happen for so long, or until none is planned.
  void run_for(Duration duration);

  EventQueue event_queue;
  Trace trace;
  SimNetwork network;
  Oracle oracle;
  RmaOracle rma;
  AtomicOracle atomics;
  SimRegions regions;
  SimDevices devices;
  WorkloadPlan plan;
  std::vector<std::unique_ptr<SimHost>> hosts;

 private:
  std::uint64_t seed_;
  std::uint32_t size_;
  transport::AddressTable addresses_;
};

}  // namespace cluster::sim
