// What the applications of a run have around them: the engine they use, the judges who watch, the clock
// of the run, and who else there is.
#pragma once

#include "sim/oracle.h"
#include "sim/trace.h"
#include "sim/workload.h"

namespace cluster::engine {
class Engine;
}
namespace cluster::protocol {
class Regions;
}

namespace cluster::sim {

class AllocationMeter;
class RmaOracle;

struct ApplicationEnvironment {
  engine::Engine& engine;
  protocol::RegionTable& regions;  ///< what the engine's peers may touch
  AllocationMeter& memory;         ///< of the engine
  Oracle& oracle;
  RmaOracle& remote;
  Trace& trace;
  EventQueue& event_queue;
  const WorkloadPlan& plan;
  Thresholds thresholds;
  HostNumber self;
  std::uint32_t hosts;
  std::uint32_t incarnation;
};

}  // namespace cluster::sim
