// The environment of an application: its engine, the oracles that judge it, the queue with the clock of the
// run, and the number of hosts.
#pragma once

#include "sim/oracle.h"
#include "sim/trace.h"
#include "sim/workload.h"

namespace cluster::engine {
class Engine;
}
namespace cluster::protocol {
class RegionTable;
}

namespace cluster::sim {

class AllocationMeter;
class AtomicOracle;
class RmaOracle;

struct ApplicationEnvironment {
  engine::Engine& engine;
  protocol::RegionTable& regions;  ///< the memory that the engine's peers may access
  AllocationMeter& memory;         ///< counts the engine's memory
  Oracle& oracle;
  RmaOracle& rma;
  AtomicOracle& atomics;
  Trace& trace;
  EventQueue& event_queue;
  const WorkloadPlan& plan;
  Thresholds thresholds;
  HostNumber self;
  std::uint32_t hosts;
  std::uint32_t incarnation;
};

}  // namespace cluster::sim
