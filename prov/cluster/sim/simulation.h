// One run: a seed becomes a cluster, its workload, its faults and its end.
//
//   1. hosts start; the workload runs while faults happen
//   2. everything heals; applications send nothing new and take in what is on its way
//   3. every operation has ended, every message that must arrive has; what still waits is cancelled
//   4. the network falls silent while applications receive what is left
//   5. every process leaves; nothing is left behind
//
// Each step after the first has a bounded simulated time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/attacker.h"
#include "sim/faults.h"
#include "sim/path_attacker.h"
#include "sim/sim_cluster.h"

namespace cluster::sim {

struct RunOptions {
  std::uint64_t seed = 1;
  std::string workload = "any";
  std::string faults = "any";
  std::uint32_t hosts = 0;  ///< 0: drawn
  std::uint32_t rails = 0;  ///< 0: drawn
  std::string security = "none";
  std::string attack = "none";
  bool devices = false;    ///< some hosts have RDMA devices, which read long messages
  bool frame_lane = true;  ///< short messages may take the frame lane
  std::string trace;       ///< file; empty: none
};

struct RunReport {
  std::string description;  ///< what was drawn
  std::uint64_t digest = 0;
  std::uint64_t messages = 0;
  std::uint64_t delivered = 0;
  std::uint64_t bytes = 0;
  std::uint64_t failures = 0;  ///< operations that ended with an error that was permitted
  std::uint64_t histories = 0;
  std::uint64_t steps = 0;
  Duration duration{0};
  Counters counters;
  NetworkTotals network;
};

class Simulation {
 public:
  explicit Simulation(const RunOptions& options);

  /// Throws SafetyFailure or LivenessFailure.
  RunReport run();
  /// What was drawn, in a line.
  const std::string& description() const { return description_; }

 private:
  HostProfile draw_profile();
  void draw_ports();
  void run_workload();
  void run_until(Time limit, const char* awaited, bool (Simulation::*reached)());
  bool all_finished();
  bool all_delivered();
  bool all_idle();
  bool silent() { return cluster_.event_queue.empty(); }
  bool all_exited();
  void check_datagrams() const;
  void check_memory() const;
  void check_windows() const;
  void check_retransmissions() const;
  void check_credit() const;
  void check_store() const;
  void check_attack() const;
  RunReport report() const;

  SeededRandom random_;
  std::uint32_t host_count_;
  WorkloadPlan plan_;
  Severity severity_ = Severity::none;
  Duration horizon_;
  Duration peer_timeout_;
  Duration outage_{0};  ///< how long hosts wait for an outage to end
  Duration workload_lasts_{0};
  SimCluster cluster_;
  std::vector<HostProfile> profiles_;
  std::unique_ptr<FaultSchedule> faults_;
  std::unique_ptr<PathAttacker> path_attacker_;  ///< where there are keys
  AttackKind attack_ = AttackKind::none;
  std::unique_ptr<Attacker> attacker_;
  std::string description_;
};

}  // namespace cluster::sim
