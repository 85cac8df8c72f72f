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

class MemoryAccount;
class RemoteOracle;

struct Surroundings {
  engine::Engine& engine;
  protocol::Regions& regions;  ///< what the engine's peers may touch
  MemoryAccount& account;      ///< of the engine
  Oracle& oracle;
  RemoteOracle& remote;
  Trace& trace;
  Timetable& timetable;
  const WorkloadPlan& plan;
  Thresholds thresholds;
  HostNumber self;
  std::uint32_t hosts;
  std::uint32_t life;
};

}  // namespace cluster::sim
