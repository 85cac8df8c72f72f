// What goes wrong in a run: impairments of every cable for the whole run, and incidents at drawn times.
// All faults are drawn before the run begins. At the end everything is healed, and the hosts have a bounded
// time to recover.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/death_watch.h"
#include "sim/sim_host.h"
#include "sim/sim_network.h"

namespace cluster::sim {

/// The severity of a run; each level includes those before it.
enum class Severity : std::uint8_t {
  none,      ///< perfect cables, every process runs
  network,   ///< cables lose, duplicate, reorder and damage frames, ports go down, the network is cut for a
             ///< while; of several rails one may be gone for long
  hosts,     ///< processes are away or stopped, clocks jump
  restarts,  ///< processes are killed or leave, and come back
  outage,    ///< the network is gone for longer than peers wait for each other, or all of it for a while
};

struct Incident {
  enum class Kind : std::uint8_t {
    port_down,
    cut,
    detour,
    ethertype_blocked,
    narrowed,
    reboot,
    computing,
    no_progress_thread,
    stopped,
    power_off,
    clock_jump,
    readdressed,
    crash,
    crash_after_success,
    leave
  };
  Time at{};
  Kind kind = Kind::port_down;
  HostNumber host = 0;
  RailNumber rail = 0;         ///< port_down, ethertype_blocked, narrowed
  Duration duration{0};        ///< of the trouble; if a process ends: until the next incarnation begins
  bool comes_back = true;      ///< if a process ends: there is a next incarnation
  Duration clock_set_back{0};  ///< the real-time clock of that incarnation
  Duration longer_by{0};       ///< detour
  Cut cut;
  SimNetwork::Side side = SimNetwork::Side::out;  ///< ethertype_blocked
  bool no_carrier = false;                        ///< reboot: the hosts see that their ports are down
};

struct FaultPlan {
  Severity severity = Severity::none;
  bool lossy = false;
  Duration outage_min{0};  ///< a shorter interruption is no outage
  Duration lasts{0};       ///< the workload lasts at least so long
  std::vector<Incident> incidents;
  std::vector<bool> answered;  ///< hosts of which peers hear soon when a process ends there
  bool keyed = false;          ///< what has not been opened says nothing of a peer
};

std::vector<std::string_view> severity_names();
/// False if there is no such name. "any" draws one.
bool draw_severity(std::string_view name, SeededRandom& random, Severity& out);
/// Draws impairments into the ports, and the incidents of a run whose workload lasts `horizon` or so.
FaultPlan draw_faults(Severity severity, std::uint32_t hosts, Duration horizon, Duration peer_timeout,
                      SimNetwork& network, SeededRandom& random);

/// Networks that carry no EtherType frames, or not everywhere, or not for a while: real switches do that, so
/// it happens at every severity. Where networks are cut, some cuts spare it.
void draw_ethertype_blocks(std::uint32_t hosts, Duration horizon, SimNetwork& network, FaultPlan& plan,
                           SeededRandom& random);

/// A router or tunnel on the way from a host carries less than the links do: from the beginning, or for a while.
void draw_narrow_paths(std::uint32_t hosts, Duration horizon, const SimNetwork& network, FaultPlan& plan,
                       SeededRandom& random);

/// In half of the runs with outages all switches reboot once: nothing passes for up to 45 s. Every host then
/// notices that it hears nobody, so no operation may fail because of it. Other interruptions are short in such
/// a run. Returns how long hosts wait for such an outage to end (EngineSettings::outage).
Duration draw_reboot(Duration horizon, Duration peer_timeout, FaultPlan& plan, SeededRandom& random);

/// A host gets another address in mid-session, and perhaps its first one again later.
void draw_moves(std::uint32_t hosts, Duration horizon, const SimNetwork& network, FaultPlan& plan,
                SeededRandom& random);

/// What answers for a process that does not: kernels that say whether it exists, ICMP errors, which may be
/// filtered. Where a kernel answers, the process may be stopped for as long as it likes.
void draw_answers(std::vector<HostProfile>& hosts, Duration horizon, Duration peer_timeout,
                  SimNetwork& network, FaultPlan& plan, SeededRandom& random);

/// Lets incidents begin and end at their times.
class FaultSchedule final : public EventHandler {
 public:
  FaultSchedule(FaultPlan plan, Duration peer_timeout, Duration outage, EventQueue& event_queue, Trace& trace,
                SimNetwork& network, Oracle& oracle, std::vector<std::unique_ptr<SimHost>>& hosts);

  void handle_event(std::uint64_t note) override;
  /// Ends all faults: no incident begins any more, ports come up, and processes due to restart do so now.
  void heal();

 private:
  void begin(const Incident& incident);
  void end(const Incident& incident);
  void report_connections();
  void kill(const Incident& incident);
  void set_carrier(bool carrier);
  bool has_met_all(HostNumber host) const;

  FaultPlan plan_;
  EventQueue& event_queue_;
  Trace& trace_;
  SimNetwork& network_;
  Oracle& oracle_;
  std::vector<std::unique_ptr<SimHost>>& hosts_;
  std::vector<bool> returning_;  ///< hosts whose next incarnation is planned
  std::vector<Duration> set_back_;
  DeathWatch deaths_;
  bool healed_ = false;
};

}  // namespace cluster::sim
