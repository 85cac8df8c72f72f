// One run: a seed becomes a cluster, its workload, its faults and its end.
//
//   1. Hosts start, and the workload runs while faults happen.
//   2. All faults end. Applications send nothing new, and receive the messages in flight.
//   3. Every operation ends, and every message that must arrive arrives. Receives that still wait are
//      cancelled.
//   4. The network falls silent while applications receive what is left.
//   5. Every process leaves, and nothing is left behind.
//
// The simulated time of each step after the first is limited.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/attacker.h"
#include "sim/faults.h"
#include "sim/path_attacker.h"
#include "sim/sim_cluster.h"
#include "sim/sim_relays.h"

namespace cluster::sim {

struct RunOptions {
  std::uint64_t seed = 1;
  std::string workload = "any";
  std::string faults = "any";
  std::uint32_t hosts = 0;  ///< 0: drawn
  std::uint32_t rails = 0;  ///< 0: drawn
  std::string security = "none";
  std::string attack = "none";
  bool translator = false;  ///< a router translates the addresses of one host; only with keys
  bool relay = false;       ///< the hosts do not all see each other, and use relays; only with keys
  bool devices = false;     ///< some hosts have RDMA devices, which read long messages and carry frames
  bool frame_lane = true;   ///< short messages may take the frame lane
  std::string trace;        ///< name of a file; empty: no trace
};

struct RunReport {
  std::string description;  ///< what was drawn
  std::uint64_t digest = 0;
  std::uint64_t messages = 0;
  std::uint64_t delivered = 0;
  std::uint64_t bytes = 0;
  std::uint64_t failures = 0;  ///< operations that ended with a permitted error
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
  /// Returns what was drawn, in one line.
  const std::string& description() const { return description_; }

 private:
  HostProfile draw_profile();
  void draw_ports();
  void draw_devices(std::uint64_t seed, FaultPlan& faults);
  void add_translator(std::uint64_t seed, FaultPlan& faults);
  void add_relays(std::uint64_t seed, FaultPlan& faults);
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
  void check_queue_pairs();
  bool undisturbed(HostNumber host, const engine::EndpointStats& seen, HostNumber other) const;
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
  std::unique_ptr<PathAttacker> path_attacker_;  ///< null if there are no keys
  std::unique_ptr<SimRelays> relays_;            ///< null if there are none
  AttackKind attack_ = AttackKind::none;
  std::unique_ptr<Attacker> attacker_;
  std::string description_;
};

}  // namespace cluster::sim
