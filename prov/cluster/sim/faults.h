// What goes wrong in a run: impairments of every cable for the whole run, and incidents at drawn times. All
// faults are drawn before the run begins. When the workload is over all faults end, and the hosts have a
// limited time to recover.
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
  hosts,     ///< processes pause or are stopped, clocks jump
  restarts,  ///< processes are killed or leave, and most begin again
  outage,    ///< parts of the network are gone for longer than peers wait, or all of it for a while
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
    device_removed,
    crash,
    crash_after_success,
    leave
  };
  Time at{};
  Kind kind = Kind::port_down;
  HostNumber host = 0;
  RailNumber rail = 0;         ///< for port_down, ethertype_blocked, narrowed
  Duration duration{0};        ///< of the incident; if a process ends: until the next incarnation begins
  bool comes_back = true;      ///< if a process ends: there is a next incarnation
  Duration clock_set_back{0};  ///< how far the real-time clock of that incarnation is set back
  Duration longer_by{0};       ///< for detour: by how much the way is longer
  Cut cut;
  SimNetwork::Side side = SimNetwork::Side::out;  ///< for ethertype_blocked
  bool no_carrier = false;                        ///< for reboot: the hosts see that their ports are down
};

struct FaultPlan {
  Severity severity = Severity::none;
  bool lossy = false;
  Duration outage_min{0};  ///< a shorter interruption is no outage
  Duration lasts{0};       ///< the least duration of the workload
  std::vector<Incident> incidents;
  std::vector<bool> answered;  ///< for each host: whether peers soon hear of the end of its process
  bool keyed = false;          ///< the hosts have keys
};

std::vector<std::string_view> severity_names();
/// Sets `out` to the severity of this name; "any" draws one. Returns false if there is no such name.
bool draw_severity(std::string_view name, SeededRandom& random, Severity& out);
/// Draws impairments into the ports. Returns the incidents of a run whose workload lasts about `horizon`.
FaultPlan draw_faults(Severity severity, std::uint32_t hosts, Duration horizon, Duration peer_timeout,
                      SimNetwork& network, SeededRandom& random);

/// Draws ports that carry no EtherType frames, from the beginning or for a while. Real switches do that, so
/// it happens at every severity. Some cuts of the network spare EtherType frames.
void draw_ethertype_blocks(std::uint32_t hosts, Duration horizon, SimNetwork& network, FaultPlan& plan,
                           SeededRandom& random);

/// Draws routers or tunnels on the way from some hosts, which carry only frames that are shorter than the
/// links allow: from the beginning, or for a while.
void draw_narrow_paths(std::uint32_t hosts, Duration horizon, const SimNetwork& network, FaultPlan& plan,
                       SeededRandom& random);

/// In half of the runs with severity `outage` all switches reboot once: nothing passes for up to 45 s. Every
/// host then notices that it hears no other host, so no operation may fail because of the reboot. Other
/// interruptions of the network are short in such a run. Returns how long hosts wait for an outage to end
/// (EngineSettings::outage).
Duration draw_reboot(Duration horizon, Duration peer_timeout, FaultPlan& plan, SeededRandom& random);

/// Gives one host other addresses while it has sessions, and perhaps its first address again later.
void draw_moves(std::uint32_t hosts, Duration horizon, const SimNetwork& network, FaultPlan& plan,
                SeededRandom& random);

/// Draws when RDMA devices are removed, and come back. Devices of several hosts may be gone at once.
void draw_device_removals(std::uint32_t hosts, Duration horizon, FaultPlan& plan, SeededRandom& random);

/// Draws what tells peers of the end of a process: kernels that say whether the process exists, and ICMP
/// errors, which may be filtered. If the kernel of a host answers, the process there may be stopped for
/// longer than the peer timeout. Some processes end because their host loses its power.
void draw_answers(std::vector<HostProfile>& hosts, Duration horizon, Duration peer_timeout,
                  SimNetwork& network, FaultPlan& plan, SeededRandom& random);

/// Begins and ends each incident at its time.
class FaultSchedule final : public EventHandler {
 public:
  FaultSchedule(FaultPlan plan, Duration peer_timeout, Duration outage, EventQueue& event_queue, Trace& trace,
                SimNetwork& network, Oracle& oracle, std::vector<std::unique_ptr<SimHost>>& hosts);

  void handle_event(std::uint64_t note) override;
  /// Ends all faults. No incident begins any more, ports come up, devices are back, and paused hosts
  /// continue. Processes that are due to restart do so now.
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
