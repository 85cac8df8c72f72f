// One host: a process, or none at the moment; its clock; and how it behaves. It polls like an application that
// waits: soon after frames arrived, when the engine's next deadline is due, and again as long as that led to
// anything. Every action takes time, during which the host does nothing else.
//
// A process can be absent (computing: its keep-alive responder and its progress thread are there), stopped
// (nothing runs), killed, or leave in peace; a new one then begins a new incarnation on the same address.
#pragma once

#include <memory>
#include <optional>

#include "sim/allocation_meter.h"
#include "sim/next_poll.h"
#include "sim/sim_clock.h"
#include "sim/sim_network.h"
#include "sim/sim_process.h"

namespace cluster::sim {

class SimHost final : public EventHandler, public NetworkNode {
 public:
  SimHost(const SharedParts& shared, HostNumber number, const HostProfile& profile);
  ~SimHost() override;

  /// A process begins; there must be none. Its epoch comes from a real-time clock that may have been
  /// set back.
  void start(Duration clock_set_back = Duration{0});
  /// The process is killed without notice to its peers. Without power, until the next one begins, the host's
  /// kernel says nothing, nor does it take anything in.
  void crash(bool powered = true);
  /// It will be killed the moment after an operation of its application has succeeded. It must be running.
  void crash_after_success();
  /// The application closes its endpoint; the process ends when nothing is owed any more.
  void leave();
  bool running() const { return process_ != nullptr; }
  bool exiting() const { return exit_deadline_.has_value(); }

  enum class PauseKind : std::uint8_t {
    computing,           ///< keep-alive responder and progress thread are there
    no_progress_thread,  ///< the keep-alive responder is there
    stopped,             ///< neither is
  };
  void pause(Duration duration, PauseKind kind);
  void resume();
  /// True if the application has not run all the time since then.
  bool away_since(Time since) const {
    return pause_.last >= since || shared_.event_queue.now() < pause_.until;
  }
  void jump_clock(Duration by);
  /// The host gets another address on that rail, or its first one again. It must run.
  void readdress(RailNumber rail, bool back);

  Application& application() { return process_->application(); }
  /// Sees to it that the host polls at `at` or earlier.
  void wake(Time at);
  void wake_now();

  /// What its engine shows of itself; a process must be running.
  engine::EndpointStats stats() const { return *process_->engine().stats(); }
  const AllocationMeter& memory() const { return memory_; }
  /// Sums over all incarnations.
  Counters counters() const;
  /// Most messages that ever waited for their receive.
  std::size_t most_unexpected() const { return record_.most_unexpected; }
  /// The longest time between two frames that arrived.
  Duration longest_stall() const { return record_.longest_stall; }

  void handle_event(std::uint64_t note) override;
  bool deliver(std::unique_ptr<Packet>& packet) override;
  void deliver_path_error(const link::PathError& error) override;

 private:
  /// What is kept over all incarnations.
  struct Record {
    Counters ended;  ///< of incarnations that have ended
    std::size_t most_unexpected = 0;
    Time last_frame{};
    Duration longest_stall{0};
  };
  struct Pause {
    Time until{};
    Time last{};  ///< when the last pause was to end
    PauseKind kind = PauseKind::computing;
  };

  void turn();
  void wait_after_turn(bool acted, std::uint64_t frames);
  void end_process();
  void answer_keep_alive(const Packet& packet);

  SharedParts shared_;
  HostNumber number_;
  HostProfile profile_;
  SimClock clock_;
  SeededRandom random_;  ///< for the host's own behaviour
  SeededRandom engine_random_;
  AllocationMeter memory_;
  std::unique_ptr<SimProcess> process_;
  Record record_;
  NextPoll next_poll_;
  Pause pause_;
  Time progress_at_{};                 ///< when the progress thread runs next
  std::optional<Time> exit_deadline_;  ///< while the process leaves
  bool crash_after_success_ = false;
};

}  // namespace cluster::sim
