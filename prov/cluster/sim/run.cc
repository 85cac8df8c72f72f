#include "sim/run.h"

#include <cinttypes>
#include <cstdio>

#include "sim/connection_simulation.h"
#include "sim/group_simulation.h"
#include "sim/ring_simulation.h"

namespace cluster::sim {
namespace {

template <std::size_t size>
void copy_text(std::array<char, size>& to, const std::string& text) {
  std::snprintf(to.data(), to.size(), "%s", text.c_str());
}

const char* name_of(ExitStatus status) {
  switch (status) {
    case ExitStatus::good: return "good";
    case ExitStatus::usage: return "usage";
    case ExitStatus::safety: return "SAFETY";
    case ExitStatus::liveness: return "LIVENESS";
    case ExitStatus::crash: return "CRASH";
  }
  return "unknown";
}

template <typename Kind>
Outcome run_kind(const RunOptions& options, bool announce) {
  Outcome outcome;
  outcome.seed = options.seed;
  Kind simulation(options);
  copy_text(outcome.description, simulation.description());
  if (announce) {
    std::printf("seed %" PRIu64 ": %s\n", options.seed, outcome.description.data());
    std::fflush(stdout);
  }
  try {
    const RunReport report = simulation.run();
    outcome.digest = report.digest;
    outcome.messages = report.messages;
    outcome.bytes = report.bytes;
    outcome.failures = report.failures;
    outcome.frames = report.network.frames;
    outcome.histories = report.histories;
    outcome.steps = report.steps;
    outcome.simulated_ns = report.duration.count();
  } catch (const SafetyFailure& failure) {
    outcome.status = ExitStatus::safety;
    copy_text(outcome.error_text, failure.what());
  } catch (const LivenessFailure& failure) {
    outcome.status = ExitStatus::liveness;
    copy_text(outcome.error_text, failure.what());
  }
  return outcome;
}

}  // namespace

Outcome run_seed(const RunOptions& options, bool announce) {
  if (options.workload == kGroupWorkload) return run_kind<GroupSimulation>(options, announce);
  if (options.workload == kRingWorkload) return run_kind<RingSimulation>(options, announce);
  if (options.workload == kConnectionWorkload) return run_kind<ConnectionSimulation>(options, announce);
  return run_kind<Simulation>(options, announce);
}

void print_outcome(const Outcome& outcome, const RunOptions& options) {
  if (outcome.status == ExitStatus::good) {
    std::printf("digest %016" PRIx64 "  %" PRIu64 " messages, %" PRIu64 " bytes, %" PRIu64 " failed, %" PRIu64
                " frames, %" PRIu64 " histories, %.3f s simulated\n",
                outcome.digest, outcome.messages, outcome.bytes, outcome.failures, outcome.frames,
                outcome.histories, static_cast<double>(outcome.simulated_ns) / 1e9);
    return;
  }
  std::printf("%s  seed %" PRIu64 " (%s): %s\n", name_of(outcome.status), outcome.seed,
              outcome.description.data(), outcome.error_text.data());
  std::printf("  again: cluster-sim --seed %" PRIu64, outcome.seed);
  if (options.workload != "any") std::printf(" --workload %s", options.workload.c_str());
  if (options.faults != "any") std::printf(" --faults %s", options.faults.c_str());
  if (options.attack != "none") std::printf(" --attack %s", options.attack.c_str());
  if (options.hosts != 0) std::printf(" --hosts %u", options.hosts);
  if (options.rails != 0) std::printf(" --rails %u", options.rails);
  if (options.security != "none") std::printf(" --security %s", options.security.c_str());
  if (options.translator) std::printf(" --translator");
  if (options.relay) std::printf(" --relay");
  if (options.devices) std::printf(" --devices");
  if (!options.frame_lane) std::printf(" --no-frame-lane");
  std::printf(" --trace FILE\n");
}

}  // namespace cluster::sim
