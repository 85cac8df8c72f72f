#include "sim/sim_cluster.h"

namespace cluster::sim {

SimCluster::SimCluster(std::uint64_t run_seed, std::uint32_t host_count, const WorkloadPlan& workload,
                       RailNumber rails, std::uint32_t beside, bool joins_devices)
    : trace(event_queue),
      network(event_queue, trace, run_seed, host_count + beside, rails, joins_devices),
      oracle(host_count),
      rma(oracle.incarnations()),
      atomics(oracle.incarnations()),
      regions(run_seed, host_count),
      devices(event_queue, run_seed, host_count),
      plan(workload),
      seed_(run_seed),
      size_(host_count) {
  for (HostNumber host = 0; host < host_count; ++host) addresses_.insert(address_of(host));
}

SimHost& SimCluster::add_host(const HostProfile& profile) {
  const SharedParts shared{event_queue, network, oracle,     rma,  atomics, regions,
                           devices,     trace,   addresses_, plan, size_,   seed_};
  hosts.push_back(std::make_unique<SimHost>(shared, static_cast<HostNumber>(hosts.size()), profile));
  return *hosts.back();
}

Counters SimCluster::counters() const {
  Counters sum;
  for (const auto& host : hosts) {
    const Counters counters = host->counters();
#define COUNTER(name, help) sum.name += counters.name;
#include "base/counters.def"
#undef COUNTER
  }
  return sum;
}

void SimCluster::run_for(Duration duration) {
  const Time end = event_queue.now() + duration;
  while (!event_queue.empty() && event_queue.next() <= end) event_queue.step();
}

}  // namespace cluster::sim
