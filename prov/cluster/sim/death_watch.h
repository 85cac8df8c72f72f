// Checks that deaths are noticed in time. When a process is killed, each pending send to it must end within
// a limit. The limit depends on whether the process's host tells peers of the death. A send is exempt if its
// sender was away. If the next process on the host has begun by then, nothing is checked.
//
// A sender that hears no other host may regard the silence of a host as an outage, and then waits for
// longer. A sender that could hear another host all the time must not do that.
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
    Duration silent;  ///< how long a sender may wait for a silent host
    Duration outage;  ///< how much longer it may wait if it hears no host; 0: no longer
    /// The hosts have keys. A sender that has opened no frame of the process does not know the process yet,
    /// so its sends are not checked.
    bool keyed;
  };
  DeathWatch(EventQueue& event_queue, Oracle& oracle, std::vector<std::unique_ptr<SimHost>>& hosts,
             const Limits& limits)
      : event_queue_(event_queue), oracle_(oracle), hosts_(hosts), limits_(limits) {}

  /// The process of the host has been killed. `answered`: a peer that asks the host learns of the death.
  void killed(HostNumber host, bool answered);
  void handle_event(std::uint64_t note) override;

 private:
  /// The longest time until the first questions and their answers have passed the network, whatever it does
  /// to them.
  static constexpr Duration kAnsweredWithin = 1500ms;
  static constexpr Duration kSilentSlack = 1s;
  /// For so long after the death of a process, the attacker on the path may send lost frames again.
  static constexpr Duration kKeptLongest = 3s;
  /// The longest reboot of all switches. Nobody notices a death during a reboot.
  static constexpr Duration kRebootLongest = 45s;

  /// A host that the sender has met. If the sender hears this host, it knows that the network works.
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
    /// When the sends are checked: if the host answers, if it is silent, and if there may be an outage.
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
