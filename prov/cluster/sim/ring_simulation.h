// The rings of a node on a simulated clock and kernel. Processes join a ring group, leave it, and die at any
// moment: in the middle of a step, or two at the same time. Meanwhile the interface goes down and comes up.
// The tested objects are those of the plugin (os/ring_steps.h, os/ring_table.h, os::spreading()).
//
// The simulation checks that a frame to a member that has its ring reaches this ring and no other, whatever
// becomes of the other members. After the troubles every process gets its ring. When all processes have
// ended, nothing is left.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "os/ring_steps.h"
#include "sim/event_queue.h"
#include "sim/ring_kernel.h"
#include "sim/seeded_random.h"
#include "sim/simulation.h"

namespace cluster::sim {

/// The workload of cluster-sim that consists of these runs. No other workload includes them.
inline constexpr const char* kRingWorkload = "rings";

class RingSimulation final : public EventHandler {
 public:
  explicit RingSimulation(const RunOptions& options);
  const std::string& description() const { return description_; }
  RunReport run();

 private:
  enum class What : std::uint8_t { trouble, frame, next, effect, installed, unlock, closed, flap };
  enum class State : std::uint8_t { starts, makes, enters, installs, works, left, dead };

  struct Process {
    SocketAddress address;
    State state = State::starts;
    std::uint32_t number = 0;  ///< number of its lock in the table; 0: none
    std::uint64_t serial = 0;
    std::uint64_t wanted = 0;
    unsigned calls_left = 0;  ///< calls of the kernel until it dies in one; 0: it does not die
    bool inherited = false;
    bool leaves = false;
    bool open = true;  ///< it has descriptors, so the group exists
    os::RingProgram program;
  };
  class Kernel;
  struct Killed {};

  void handle_event(std::uint64_t note) override;
  void plan(Duration after, What what, std::size_t process);
  void make_trouble();
  void start_one();
  void kill(std::size_t process);
  void step(std::size_t process);
  bool take(std::size_t process);
  void begin_install(std::size_t process);
  void end_install(std::size_t process);
  void leave(std::size_t process);
  void end_group();
  void check_frame();
  std::optional<std::size_t> any(bool (*wanted)(const Process&));
  bool settled() const;
  os::RingList& list() { return table_->list(os::RingKind::v4); }

  SeededRandom random_;
  std::string description_;
  EventQueue events_;
  RingKernelModel kernel_;
  std::unique_ptr<os::RingTable> table_;
  std::vector<Process> processes_;
  std::optional<std::size_t> installer_;  ///< the process that has the lock of the program
  struct Plan {
    std::size_t members = 0;
    std::size_t troubles = 0;
    std::uint32_t dies_in_step = 0;
    std::uint32_t flaps = 0;
  } plan_;
  std::uint64_t frames_ = 0;
  std::uint64_t deaths_ = 0;
  bool over_ = false;
};

}  // namespace cluster::sim
