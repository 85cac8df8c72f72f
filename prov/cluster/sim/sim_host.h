// One host: its process, if it has one at the moment, its clock, and its behaviour. It polls like an
// application that waits: soon after frames have arrived, when the engine's next deadline is due, and again
// as long as polls find work. Every action takes time, during which the host does nothing else.
//
// A process can be away (it computes, but its keep-alive responder and its progress thread run) or stopped
// (nothing runs). It can be killed, or close its endpoint and leave. The next process on the same address is
// a new incarnation.
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

  /// Starts a process; there must be none. The process's epoch comes from a real-time clock that may have
  /// been set back.
  void start(Duration clock_set_back = Duration{0});
  /// Kills the process without notice to its peers. `powered`: if this is false, the host neither sends nor
  /// receives until the next process begins.
  void crash(bool powered = true);
  /// Kills the process the moment after an operation of its application has succeeded. The process must run.
  void crash_after_success();
  /// The application closes its endpoint. The process ends when the engine owes nothing any more, or after a
  /// limit.
  void leave();
  bool running() const { return process_ != nullptr; }
  bool exiting() const { return exit_deadline_.has_value(); }

  enum class PauseKind : std::uint8_t {
    computing,           ///< keep-alive responder and progress thread run
    no_progress_thread,  ///< only the keep-alive responder runs
    stopped,             ///< neither runs
  };
  void pause(Duration duration, PauseKind kind);
  void resume();
  /// Returns true if the application was away at any time since then.
  bool away_since(Time since) const {
    return pause_.last >= since || shared_.event_queue.now() < pause_.until;
  }
  void jump_clock(Duration by);
  /// Gives the host another address on this rail, or its first one again. The process must run.
  void readdress(RailNumber rail, bool back);
  /// Removes the host's RDMA device. A process that begins meanwhile does not use the device.
  void remove_device();
  /// The device is back, with another queue pair.
  void return_device();

  Application& application() { return process_->application(); }
  /// Makes the host poll at `at` or earlier.
  void wake(Time at);
  void wake_now();

  /// Returns the statistics of its engine. A process must run.
  engine::EndpointStats stats() const { return *process_->engine().stats(); }
  const AllocationMeter& memory() const { return memory_; }
  /// Returns the sums over all incarnations.
  Counters counters() const;
  /// Returns the greatest number of messages that ever waited for a receive.
  std::size_t most_unexpected() const { return record_.most_unexpected; }
  /// Returns the longest time between two arriving frames.
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
    Time last{};  ///< when the last pause ended, or is to end
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
