#include "sim/faults.h"

#include <algorithm>
#include <array>

namespace cluster::sim {
namespace {

constexpr std::array<std::string_view, 5> kNames{"none", "network", "hosts", "lives", "silence"};

/// Events of the schedule: the number of an incident, and whether it begins or ends.
constexpr std::uint64_t kEnds = std::uint64_t{1} << 32;

/// A clock that jumps further makes a peer that has just begun look as if it had been missing for long.
constexpr Duration kClockJumpMax = 150ms;

/// Mostly small, sometimes as large as `most`: most runs shall be about one thing.
std::uint32_t rate(std::uint32_t most, Dice& dice) {
  if (!dice.chance(400'000)) return 0;
  const std::uint32_t reduced = most >> dice.below(10);
  return static_cast<std::uint32_t>(dice.below(std::uint64_t{reduced} + 1));
}

Hazard draw_hazard(Dice& dice) {
  Hazard hazard;
  hazard.loss = rate(60'000, dice);
  hazard.duplicate = rate(50'000, dice);
  hazard.corrupt = rate(30'000, dice);
  hazard.reorder = rate(200'000, dice);
  hazard.reorder_by = dice.between(1us, dice.chance(100'000) ? Duration{20ms} : Duration{300us});
  if (dice.chance(300'000)) hazard.jitter = dice.between(100ns, 50us);
  if (dice.chance(200'000)) {
    hazard.burst_begin = static_cast<std::uint32_t>(dice.between(50, 2'000));
    hazard.burst_end = static_cast<std::uint32_t>(dice.between(30'000, 500'000));
    hazard.burst_loss = static_cast<std::uint32_t>(dice.between(300'000, kMillion));
  }
  hazard.straggle = rate(50'000, dice);
  hazard.straggle_by = dice.between(1ms, 100ms);
  return hazard;
}

bool of_network(const Incident& incident) {
  return incident.kind == Incident::Kind::port_down || incident.kind == Incident::Kind::cut;
}

SimNetwork::Cut draw_cut(std::uint32_t hosts, Dice& dice) {
  SimNetwork::Cut cut{0, std::vector<bool>(hosts), std::vector<bool>(hosts)};
  const bool one_way = dice.chance(500'000);
  for (std::uint32_t i = 0; i < hosts; ++i) {
    cut.from[i] = dice.chance(500'000);
    cut.to[i] = one_way ? dice.chance(500'000) : !cut.from[i];
  }
  return cut;
}

/// Of several rails each may be gone for a while, but only the last for longer than peers wait: the others
/// are not to be missing all that time.
void draw_rail(Incident& incident, RailNumber rails, Duration peer_timeout, Dice& dice) {
  const bool for_long = dice.chance(400'000);
  const RailNumber rail = for_long ? rails - 1 : static_cast<RailNumber>(dice.below(rails));
  incident.rail = incident.cut.rail = rail;
  if (for_long) incident.duration = dice.between(peer_timeout / 2, 2 * peer_timeout);
}

Incident draw_incident(Severity severity, std::uint32_t hosts, Duration horizon, Duration peer_timeout,
                       Dice& dice) {
  using Kind = Incident::Kind;
  std::vector<Kind> kinds{Kind::port_down, Kind::cut};
  if (severity >= Severity::hosts) {
    kinds.insert(kinds.end(), {Kind::computing, Kind::alone, Kind::stopped, Kind::clock_jump});
  }
  if (severity >= Severity::lives) kinds.insert(kinds.end(), {Kind::crash, Kind::crash, Kind::leave});
  Incident incident;
  incident.kind = kinds[dice.below(kinds.size())];
  incident.at = Time{} + dice.between(Duration{0}, horizon);
  incident.host = static_cast<HostNumber>(dice.below(hosts));
  // Nobody is to be taken for dead because of an incident, or even two in a row.
  const Duration longest = peer_timeout / 5;
  incident.duration = dice.chance(700'000) ? dice.between(10us, 5ms) : dice.between(1ms, longest);
  switch (incident.kind) {
    case Kind::cut: incident.cut = draw_cut(hosts, dice); break;
    case Kind::computing:
    case Kind::alone:
      // Whoever computes may do so for much longer than peers wait for the dead.
      if (dice.chance(200'000)) incident.duration = dice.between(peer_timeout / 2, 3 * peer_timeout);
      break;
    case Kind::clock_jump: incident.duration = std::min(incident.duration, kClockJumpMax); break;
    case Kind::crash:
    case Kind::crash_at_success:
    case Kind::leave:
      incident.comes_back = !dice.chance(200'000);
      if (dice.chance(100'000)) incident.clock_set_back = dice.between(1s, 100s);
      break;
    default: break;
  }
  if (severity == Severity::silence && of_network(incident) && dice.chance(500'000)) {
    incident.duration = dice.between(peer_timeout / 2, 2 * peer_timeout);
  }
  return incident;
}

/// What a process says before it ends comes when the next one has spoken.
Incident late_last_words(const Incident& ending, Dice& dice) {
  Incident detour;
  detour.kind = Incident::Kind::detour;
  detour.host = ending.host;
  detour.duration = std::min(dice.between(10us, 1ms), ending.at.time_since_epoch());
  detour.at = ending.at - detour.duration;
  detour.longer_by = dice.chance(500'000) ? dice.between(10us, 500us) : dice.between(500us, 10ms);
  return detour;
}

/// The next life ends when it has hardly called anybody: nobody whom it has called hears from it again.
Incident early_end(const Incident& ending, Dice& dice) {
  Incident next = ending;
  next.kind = Incident::Kind::crash;
  next.at = ending.at + ending.duration + dice.between(1us, 100us);
  next.duration = dice.between(1us, 300us);
  return next;
}

/// Processes end and begin again within microseconds or milliseconds, while copies of what they and those
/// before them have said are still on their way: here is decided whose words are believed.
void draw_restlessness(std::uint32_t hosts, Duration horizon, SimNetwork& network, FaultPlan& plan,
                       Dice& dice) {
  using Kind = Incident::Kind;
  constexpr std::array kinds{Kind::crash, Kind::crash, Kind::crash_at_success, Kind::crash_at_success,
                             Kind::leave, Kind::leave};
  const Duration time = dice.chance(500'000) ? std::min<Duration>(horizon, 3ms) : horizon;
  const std::uint64_t restless = dice.between(1, hosts);
  for (std::uint64_t left = dice.between(3, 15); left > 0; --left) {
    Incident incident;
    incident.kind = dice.pick(kinds);
    incident.at = Time{} + dice.between(Duration{0}, time);
    incident.host = static_cast<HostNumber>(dice.below(restless));
    incident.duration = dice.chance(600'000) ? dice.between(1us, 300us) : dice.between(300us, 20ms);
    incident.comes_back = !dice.chance(150'000);
    if (dice.chance(500'000)) plan.incidents.push_back(late_last_words(incident, dice));
    plan.incidents.push_back(incident);
    if (incident.comes_back && dice.chance(500'000)) plan.incidents.push_back(early_end(incident, dice));
  }
  const auto straggle = static_cast<std::uint32_t>(dice.between(50'000, 300'000));
  const Duration longest = dice.between(200us, 20ms);
  const bool overtaken = dice.chance(500'000);
  for (HostNumber host = 0; host < hosts; ++host) {
    Hazard& hazard = network.port(host).out;
    hazard.straggle = straggle;
    hazard.straggle_by = longest;
    if (!overtaken) continue;
    hazard.reorder = static_cast<std::uint32_t>(dice.between(50'000, 300'000));
    hazard.reorder_by = longest;
  }
}

}  // namespace

std::vector<std::string_view> severity_names() { return {kNames.begin(), kNames.end()}; }

bool draw_severity(std::string_view name, Dice& dice, Severity& out) {
  // Drawn in any case, so that the rest of the run does not depend on who chose.
  const auto drawn = static_cast<Severity>(dice.below(kNames.size()));
  out = drawn;
  if (name.empty() || name == "any") return true;
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  out = static_cast<Severity>(found - kNames.begin());
  return found != kNames.end();
}

FaultPlan draw_faults(Severity severity, std::uint32_t hosts, Duration horizon, Duration peer_timeout,
                      SimNetwork& network, Dice& dice) {
  FaultPlan plan;
  plan.severity = severity;
  if (severity == Severity::none) return plan;
  plan.lossy = !dice.chance(150'000);
  for (RailNumber rail = 0; plan.lossy && rail < network.rails(); ++rail) {
    const bool alike = dice.chance(300'000);
    const Hazard common = draw_hazard(dice);
    for (HostNumber host = 0; host < hosts; ++host) {
      network.port(host, rail).out = alike ? common : draw_hazard(dice);
      network.port(host, rail).in = alike ? common : draw_hazard(dice);
    }
  }
  for (std::uint64_t left = dice.below(7); left > 0; --left) {
    Incident incident = draw_incident(severity, hosts, horizon, peer_timeout, dice);
    if (network.rails() > 1 && of_network(incident)) draw_rail(incident, network.rails(), peer_timeout, dice);
    plan.incidents.push_back(std::move(incident));
  }
  if (severity >= Severity::lives && dice.chance(600'000)) {
    draw_restlessness(hosts, horizon, network, plan, dice);
  }
  return plan;
}

void draw_shortcuts(std::uint32_t hosts, Duration horizon, SimNetwork& network, FaultPlan& plan, Dice& dice) {
  const auto draw_side = [&dice] {
    return dice.chance(500'000) ? SimNetwork::Side::out : SimNetwork::Side::in;
  };
  const std::uint32_t shut = dice.chance(300'000) ? 500'000 : 0;
  for (RailNumber rail = 0; rail < network.rails(); ++rail) {
    for (HostNumber host = 0; host < hosts; ++host) {
      if (dice.chance(shut)) network.shut_shortcut(host, rail, draw_side(), true);
    }
  }
  for (Incident& incident : plan.incidents) {
    const bool spares = dice.chance(300'000);
    if (incident.kind == Incident::Kind::cut) incident.cut.spares_shortcut = spares;
  }
  for (std::uint64_t left = dice.below(5); left > 0; --left) {
    Incident incident;
    incident.kind = Incident::Kind::shortcut_shut;
    incident.at = Time{} + dice.between(Duration{0}, horizon);
    incident.duration = dice.between(Duration{0}, horizon);
    incident.host = static_cast<HostNumber>(dice.below(hosts));
    incident.rail = static_cast<RailNumber>(dice.below(network.rails()));
    incident.side = draw_side();
    plan.incidents.push_back(incident);
  }
}

FaultSchedule::FaultSchedule(FaultPlan plan, Timetable& timetable, Trace& trace, SimNetwork& network,
                             Oracle& oracle, std::vector<std::unique_ptr<SimHost>>& hosts)
    : plan_(std::move(plan)),
      timetable_(timetable),
      trace_(trace),
      network_(network),
      oracle_(oracle),
      hosts_(hosts),
      returning_(hosts.size()),
      set_back_(hosts.size()) {
  if (plan_.severity == Severity::silence) oracle_.lives().expect_silence();
  for (std::size_t i = 0; i < plan_.incidents.size(); ++i) timetable_.plan(plan_.incidents[i].at, *this, i);
}

void FaultSchedule::happen(std::uint64_t note) {
  if (healed_) return;
  const Incident& incident = plan_.incidents[note % kEnds];
  if (note >= kEnds) return end(incident);
  begin(incident);
  timetable_.plan(timetable_.now() + incident.duration, *this, note | kEnds);
}

void FaultSchedule::begin(const Incident& incident) {
  using Kind = Incident::Kind;
  SimHost& host = *hosts_[incident.host];
  switch (incident.kind) {
    case Kind::port_down:
      trace_.line("the port of host %u on rail %u goes down", incident.host, incident.rail);
      return network_.set_down(incident.host, incident.rail, true);
    case Kind::cut: trace_.line("rail %u is cut", incident.cut.rail); return network_.cut(incident.cut);
    case Kind::detour:
      trace_.line("what host %u sends takes a longer way", incident.host);
      return network_.detour(incident.host, timetable_.now() + incident.duration, incident.longer_by);
    case Kind::shortcut_shut:
      trace_.line("the shortcut of host %u on rail %u is shut", incident.host, incident.rail);
      return network_.shut_shortcut(incident.host, incident.rail, incident.side, true);
    case Kind::computing: return host.freeze(incident.duration, SimHost::Absence::computing);
    case Kind::alone: return host.freeze(incident.duration, SimHost::Absence::alone);
    case Kind::stopped: return host.freeze(incident.duration, SimHost::Absence::stopped);
    case Kind::clock_jump: return host.jump_clock(incident.duration);
    case Kind::crash:
      if (!host.running()) return;
      host.crash();
      break;
    case Kind::crash_at_success:
      if (!host.running()) return;
      host.crash_at_success();
      break;
    case Kind::leave:
      if (!host.running() || host.leaving()) return;
      host.leave();
      break;
  }
  returning_[incident.host] = incident.comes_back;
  set_back_[incident.host] = incident.clock_set_back;
}

void FaultSchedule::end(const Incident& incident) {
  using Kind = Incident::Kind;
  SimHost& host = *hosts_[incident.host];
  switch (incident.kind) {
    case Kind::port_down:
      trace_.line("the port of host %u on rail %u comes up", incident.host, incident.rail);
      return network_.set_down(incident.host, incident.rail, false);
    case Kind::cut:
      trace_.line("rail %u is whole again", incident.cut.rail);
      return network_.mend_cuts(incident.cut.rail);
    case Kind::shortcut_shut:
      return network_.shut_shortcut(incident.host, incident.rail, incident.side, false);
    case Kind::crash:
    case Kind::crash_at_success:
    case Kind::leave:
      if (host.running() || !returning_[incident.host]) return;
      returning_[incident.host] = false;
      return host.start(incident.clock_set_back);
    default: return;
  }
}

void FaultSchedule::heal() {
  trace_.line("everything is healed");
  healed_ = true;
  network_.heal();
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (!hosts_[i]->running() && returning_[i]) hosts_[i]->start(set_back_[i]);
    hosts_[i]->thaw();
  }
}

}  // namespace cluster::sim
