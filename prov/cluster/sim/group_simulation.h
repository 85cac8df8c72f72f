// A group on a simulated clock and network. Members join, leave, die, freeze, and take nothing for a while.
// GroupOracle judges them. The tested objects are those of src/group/, without the engine above them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/group_attacker.h"
#include "sim/group_host.h"
#include "sim/simulation.h"

namespace cluster::sim {

/// The workload of cluster-sim that consists of these runs. No other workload includes them.
inline constexpr const char* kGroupWorkload = "groups";

class GroupSimulation final : public EventHandler {
 public:
  explicit GroupSimulation(const RunOptions& options);
  const std::string& description() const { return description_; }
  RunReport run();

 private:
  enum class What : std::uint8_t { post, join, leave, die, notice_death, freeze, hold, heal };

  void draw(const RunOptions& options);
  void draw_keys(const RunOptions& options);
  /// An event to plan. The initializers of a struct are evaluated from left to right, so the random numbers
  /// in them are drawn in a fixed order. The arguments of a call may be evaluated in any order.
  struct Planned {
    Duration at;
    What what;
    std::size_t host;
  };
  void plan(const Planned& event);
  void handle_event(std::uint64_t note) override;
  void join(std::size_t host);
  void post(std::size_t host);
  void die(std::size_t host);
  void tell_deaths(std::size_t host);
  SocketAddress name_of(std::size_t host) const;
  bool settled() const;

  std::uint64_t seed_;
  SeededRandom random_;
  std::string description_;
  EventQueue events_;
  GroupFaults faults_;
  std::unique_ptr<GroupNetwork> network_;
  std::vector<HostProfile> profiles_;        ///< only their keys are used
  std::unique_ptr<GroupAttacker> attacker_;  ///< null if there are no keys
  GroupOracle oracle_;
  struct Plan {
    std::size_t hosts = 0;
    std::size_t senders = 0;
    std::size_t posts = 0;
    std::size_t size_max = 0;
    bool roster = false;
    std::uint32_t deaf = 0;
    Duration end{0};
  } plan_;
  std::vector<std::unique_ptr<GroupHost>> hosts_;
  std::vector<std::unique_ptr<GroupHost>> former_;  ///< left or dead; events for them may still be planned
  Membership memberships_ = 0;
};

}  // namespace cluster::sim
