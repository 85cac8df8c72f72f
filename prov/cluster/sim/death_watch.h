// Checks that deaths are noticed in time. When a process is killed, each pending send to it must end within
// the bound for its host. Exempt are sends whose sender was away, and sends to a process that restarts
// before.
#pragma once

#include <memory>
#include <vector>

#include "sim/event_queue.h"
#include "sim/oracle.h"
#include "sim/sim_host.h"

namespace cluster::sim {

class DeathWatch final : public EventHandler {
 public:
  /// `silent`: how long a host that says nothing may be waited for. `keyed`: a sender that has opened no frame of the
  /// process knows nothing of it, so it may wait as long for it as for one that has not begun.
  DeathWatch(EventQueue& event_queue, Oracle& oracle, std::vector<std::unique_ptr<SimHost>>& hosts,
             Duration silent, bool keyed)
      : event_queue_(event_queue), oracle_(oracle), hosts_(hosts), silent_(silent), keyed_(keyed) {}

  /// The process of the host has been killed. `answered`: its host tells peers that ask.
  void killed(HostNumber host, bool answered);
  void handle_event(std::uint64_t note) override;

 private:
  /// The first questions, and their answers, under all that the network does to them.
  static constexpr Duration kAnsweredWithin = 1500ms;
  static constexpr Duration kSilentSlack = 1s;
  /// The attacker on the path replays lost frames after the death of their sender.
  static constexpr Duration kKeptLongest = 3s;

  struct Death {
    HostNumber host;
    std::uint32_t incarnation;
    Time at;
    std::vector<MessageNumber> awaited;
    Duration silent;  ///< bound of a host that says nothing
  };

  EventQueue& event_queue_;
  Oracle& oracle_;
  std::vector<std::unique_ptr<SimHost>>& hosts_;
  Duration silent_;
  bool keyed_;
  std::vector<Death> deaths_;
};

}  // namespace cluster::sim
