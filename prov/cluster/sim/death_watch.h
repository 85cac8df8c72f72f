// Checks that deaths are noticed in time. When a process is killed, each pending send to it must end within
// the bound for its host. Exempt are sends whose sender was away, and sends to a process that restarts
// before.
//
// A sender that hears nobody else may take a silent host for an outage, and then waits for longer. If the
// sender can hear another host all the time, it must not.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "sim/event_queue.h"
#include "sim/oracle.h"
#include "sim/sim_host.h"

namespace cluster::sim {

class DeathWatch final : public EventHandler {
 public:
  struct Limits {
    Duration silent;  ///< how long a host that says nothing may be waited for
    Duration outage;  ///< how long all hosts may be waited for if none says anything
    /// A sender that has opened no frame of the process knows nothing of it, so it may wait as long for it as
    /// for one that has not begun.
    bool keyed;
  };
  DeathWatch(EventQueue& event_queue, Oracle& oracle, std::vector<std::unique_ptr<SimHost>>& hosts,
             const Limits& limits)
      : event_queue_(event_queue), oracle_(oracle), hosts_(hosts), limits_(limits) {}

  /// The process of the host has been killed. `answered`: its host tells peers that ask.
  void killed(HostNumber host, bool answered);
  void handle_event(std::uint64_t note) override;

 private:
  /// The first questions, and their answers, under all that the network does to them.
  static constexpr Duration kAnsweredWithin = 1500ms;
  static constexpr Duration kSilentSlack = 1s;
  /// The attacker on the path replays lost frames after the death of their sender.
  static constexpr Duration kKeptLongest = 3s;
  /// The longest reboot of all switches. Nobody notices a death meanwhile.
  static constexpr Duration kRebootLongest = 45s;

  /// A host that the sender has met, which may show it that the network works.
  struct Witness {
    HostNumber host;
    std::uint32_t incarnation;
  };
  struct Awaited {
    MessageNumber message;
    std::vector<Witness> witnesses;
  };
  struct Death {
    HostNumber host;
    std::uint32_t incarnation;
    Time at;
    std::vector<Awaited> awaited;
    /// When the sends are checked: where the host answers, where it is silent, and where there was an outage.
    std::array<Time, 3> checks;
  };

  std::vector<Witness> witnesses_of(HostNumber sender, HostNumber dead) const;
  bool hears_others(HostNumber sender, const Death& death, const std::vector<Witness>& witnesses) const;

  EventQueue& event_queue_;
  Oracle& oracle_;
  std::vector<std::unique_ptr<SimHost>>& hosts_;
  Limits limits_;
  std::vector<Death> deaths_;
};

}  // namespace cluster::sim
