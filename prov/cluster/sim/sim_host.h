// One host: a process with an engine and an application, or none at the moment; its clock; and how it
// behaves. It polls like an application that waits: soon after frames arrived, when the engine's next
// deadline is due, and again as long as that led to anything. Everything it does takes time, during
// which it does nothing else.
//
// A process can be absent (computing: its keep-alive responder and its progress thread are there), stopped
// (nothing runs), killed, or leave in peace; a new one then begins a new incarnation on the same address.
#pragma once

#include <memory>

#include "engine/address_table.h"
#include "sim/allocation_meter.h"
#include "sim/application.h"
#include "sim/sim_clock.h"
#include "sim/sim_link.h"
#include "sim/sim_network.h"

namespace cluster::sim {

/// How a host behaves; drawn once.
struct HostProfile {
  engine::EngineSettings settings;
  std::size_t frame_max = 1472;
  bool ethertype = false;       ///< its links have one
  Duration poll_gap = 300ns;    ///< longest time between two polls of a waiting application
  Duration frame_cost = 100ns;  ///< of taking in or sending a frame
  Duration clock_ahead{0};
  Duration linger = 2s;  ///< how long a process that leaves waits for what it owes
};

/// What hosts have in common.
struct SharedParts {
  EventQueue& event_queue;
  SimNetwork& network;
  Oracle& oracle;
  RmaOracle& remote;
  AtomicOracle& atomics;
  Trace& trace;
  const engine::AddressTable& book;
  const WorkloadPlan& plan;
  std::uint32_t hosts;
  std::uint64_t seed;
};

class SimHost final : public EventHandler, public NetworkNode {
 public:
  SimHost(const SharedParts& shared, HostNumber number, const HostProfile& profile);
  ~SimHost() override;

  /// A process begins; there must be none. Its epoch comes from a real-time clock that may have been
  /// set back.
  void start(Duration clock_set_back = Duration{0});
  /// The process is killed without notice to its peers.
  void crash();
  /// It will be killed the moment after an operation of its application has succeeded.
  void crash_after_success() {
    crash_after_success_ = true;
    succeeded_ = false;
  }
  /// The application closes its endpoint; the process ends when nothing is owed any more.
  void leave();
  bool running() const { return process_ != nullptr; }
  bool exiting() const { return exiting_; }

  enum class PauseKind : std::uint8_t {
    computing,  ///< keep-alive responder and progress_client are there
    alone,      ///< the keep-alive responder is there, no progress thread
    stopped,    ///< neither is
  };
  void pause(Duration duration, PauseKind absence);
  void resume() { paused_until_ = Time{}; }
  void jump_clock(Duration by);

  Application& application();
  /// Sees to it that the host polls at `at` or earlier.
  void wake(Time at);
  void wake_now();

  /// What its engine shows of itself; a process must be running.
  engine::EndpointStats insight() const;
  /// Most messages that ever waited for their receive.
  std::size_t most_stored() const { return most_stored_; }
  const AllocationMeter& memory() const { return memory_; }
  /// Sums over all incarnations.
  Counters counters() const;
  /// The longest time between two frames that arrived.
  Duration longest_stall() const { return longest_stall_; }

  void handle_event(std::uint64_t note) override;
  bool take(std::unique_ptr<Packet>& packet) override;
  void path_error(const link::PathError& complaint) override;

 private:
  struct Process;

  std::unique_ptr<link::Link> make_link(std::uint32_t incarnation, std::vector<multipath::Rail>& rails);
  void turn();
  void attend();
  void check_wrong_peer_refused(std::uint64_t refused_before) const;
  bool drain();
  void end_process(bool in_peace);
  void answer_keep_alive(const Packet& packet);

  SharedParts shared_;
  HostNumber number_;
  HostProfile profile_;
  SimClock clock_;
  SeededRandom random_;  ///< for the host's own behaviour
  SeededRandom engine_random_;
  AllocationMeter memory_;
  std::unique_ptr<Process> process_;
  Counters past_;  ///< of incarnations that have ended
  Time poll_at_ = kNever;
  std::uint64_t poll_number_ = 0;
  Time busy_until_{};
  Time paused_until_{};
  Time progress_at_{};
  PauseKind pause_kind_ = PauseKind::computing;
  bool crash_after_success_ = false;  ///< to be killed after its next success...
  bool succeeded_ = false;            ///< ...which it has just had
  bool exiting_ = false;
  Time exit_deadline_ = kNever;
  std::size_t most_stored_ = 0;
  Time last_frame_{};
  Duration longest_stall_{0};
};

}  // namespace cluster::sim
