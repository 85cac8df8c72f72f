// Hosts, the network between them, and what watches them. Simulations and measurements are made of
// one; it knows nothing of faults or verdicts.
#pragma once

#include <memory>
#include <vector>

#include "sim/sim_host.h"

namespace cluster::sim {

class SimCluster {
 public:
  SimCluster(std::uint64_t run_seed, std::uint32_t host_count, const WorkloadPlan& workload,
             RailNumber rails = 1, std::uint32_t attackers = 0);

  /// The next host; its number is the number of those before it. Its process is yet to be started.
  SimHost& add_host(const HostProfile& profile);
  std::uint32_t size() const { return size_; }
  Counters counters() const;
  /// Lets things happen for so long, or until nothing is planned.
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
