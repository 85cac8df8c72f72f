#include "sim/faults.h"

#include <algorithm>
#include <array>

namespace cluster::sim {
namespace {

constexpr std::size_t kNarrowPath = 548;  ///< payload with an MTU of 576

constexpr std::array<std::string_view, 5> kNames{"none", "network", "hosts", "restarts", "outage"};

/// The note of an event is the number of an incident. This bit is set if the incident ends.
constexpr std::uint64_t kEnds = std::uint64_t{1} << 32;

/// If a clock jumped further, a peer that has just started would seem to have been silent for long.
constexpr Duration kClockJumpMax = 150ms;

/// Returns a rate that is mostly small, and sometimes as large as `most`. Most runs should stress one kind
/// of fault.
std::uint32_t rate(std::uint32_t most, SeededRandom& random) {
  if (!random.chance(400'000)) return 0;
  const std::uint32_t reduced = most >> random.below(10);
  return static_cast<std::uint32_t>(random.below(std::uint64_t{reduced} + 1));
}

Impairment draw_impairment(SeededRandom& random) {
  Impairment impairment;
  impairment.loss = rate(60'000, random);
  impairment.duplicate = rate(50'000, random);
  impairment.corrupt = rate(30'000, random);
  impairment.reorder = rate(200'000, random);
  impairment.reorder_by = random.between(1us, random.chance(100'000) ? Duration{20ms} : Duration{300us});
  if (random.chance(300'000)) impairment.jitter = random.between(100ns, 50us);
  if (random.chance(200'000)) {
    impairment.burst_begin = static_cast<std::uint32_t>(random.between(50, 2'000));
    impairment.burst_end = static_cast<std::uint32_t>(random.between(30'000, 500'000));
    impairment.burst_loss = static_cast<std::uint32_t>(random.between(300'000, kMillion));
  }
  impairment.late_copy = rate(50'000, random);
  impairment.late_copy_by = random.between(1ms, 100ms);
  return impairment;
}

bool of_network(const Incident& incident) {
  return incident.kind == Incident::Kind::port_down || incident.kind == Incident::Kind::cut;
}

Cut draw_cut(std::uint32_t hosts, SeededRandom& random) {
  Cut cut{0, std::vector<bool>(hosts), std::vector<bool>(hosts)};
  const bool one_way = random.chance(500'000);
  for (std::uint32_t i = 0; i < hosts; ++i) {
    cut.from[i] = random.chance(500'000);
    cut.to[i] = one_way ? random.chance(500'000) : !cut.from[i];
  }
  return cut;
}

/// Each rail may be down for a while. Only the last one may be down for longer than the peer timeout, so
/// that the other rails work for most of that time.
void draw_rail(Incident& incident, RailNumber rails, Duration peer_timeout, SeededRandom& random) {
  const bool for_long = random.chance(400'000);
  const RailNumber rail = for_long ? rails - 1 : static_cast<RailNumber>(random.below(rails));
  incident.rail = incident.cut.rail = rail;
  if (for_long) incident.duration = random.between(peer_timeout / 2, 2 * peer_timeout);
}

Incident draw_incident(Severity severity, std::uint32_t hosts, Duration horizon, Duration peer_timeout,
                       SeededRandom& random) {
  using Kind = Incident::Kind;
  std::vector<Kind> kinds{Kind::port_down, Kind::cut};
  if (severity >= Severity::hosts) {
    kinds.insert(kinds.end(), {Kind::computing, Kind::no_progress_thread, Kind::stopped, Kind::clock_jump});
  }
  if (severity >= Severity::restarts) kinds.insert(kinds.end(), {Kind::crash, Kind::crash, Kind::leave});
  Incident incident;
  incident.kind = kinds[random.below(kinds.size())];
  incident.at = Time{} + random.between(Duration{0}, horizon);
  incident.host = static_cast<HostNumber>(random.below(hosts));
  // One incident, or two in a row, must be shorter than the peer timeout: no peer may be declared dead
  // because of them.
  const Duration longest = peer_timeout / 5;
  incident.duration = random.chance(700'000) ? random.between(10us, 5ms) : random.between(1ms, longest);
  switch (incident.kind) {
    case Kind::cut: incident.cut = draw_cut(hosts, random); break;
    case Kind::computing:
    case Kind::no_progress_thread:
      // An application may compute for much longer than the peer timeout.
      if (random.chance(200'000)) incident.duration = random.between(peer_timeout / 2, 3 * peer_timeout);
      break;
    case Kind::clock_jump: incident.duration = std::min(incident.duration, kClockJumpMax); break;
    case Kind::crash:
    case Kind::crash_after_success:
    case Kind::leave:
      incident.comes_back = !random.chance(200'000);
      if (random.chance(100'000)) incident.clock_set_back = random.between(1s, 100s);
      break;
    default: break;
  }
  if (severity == Severity::outage && of_network(incident) && random.chance(500'000)) {
    incident.duration = random.between(peer_timeout / 2, 2 * peer_timeout);
  }
  return incident;
}

/// Returns a detour, after which the last frames of a process arrive behind the first ones of the next
/// process.
Incident late_last_words(const Incident& ending, SeededRandom& random) {
  Incident detour;
  detour.kind = Incident::Kind::detour;
  detour.host = ending.host;
  detour.duration = std::min(random.between(10us, 1ms), ending.at.time_since_epoch());
  detour.at = ending.at - detour.duration;
  detour.longer_by = random.chance(500'000) ? random.between(10us, 500us) : random.between(500us, 10ms);
  return detour;
}

/// Returns the end of the next incarnation, soon after its first openings. Peers that got such an opening
/// hear no more of this incarnation.
Incident early_end(const Incident& ending, SeededRandom& random) {
  Incident next = ending;
  next.kind = Incident::Kind::crash;
  next.at = ending.at + ending.duration + random.between(1us, 100us);
  next.duration = random.between(1us, 300us);
  return next;
}

/// Draws processes that end and begin again within microseconds or milliseconds. Copies of their frames, and
/// of those of earlier processes, are still under way then. This tests which of these frames peers believe.
void draw_restarts(std::uint32_t hosts, Duration horizon, SimNetwork& network, FaultPlan& plan,
                   SeededRandom& random) {
  using Kind = Incident::Kind;
  constexpr std::array kinds{Kind::crash, Kind::crash, Kind::crash_after_success, Kind::crash_after_success,
                             Kind::leave, Kind::leave};
  const Duration time = random.chance(500'000) ? std::min<Duration>(horizon, 3ms) : horizon;
  const std::uint64_t restless = random.between(1, hosts);
  for (std::uint64_t left = random.between(3, 15); left > 0; --left) {
    Incident incident;
    incident.kind = random.pick(kinds);
    incident.at = Time{} + random.between(Duration{0}, time);
    incident.host = static_cast<HostNumber>(random.below(restless));
    incident.duration = random.chance(600'000) ? random.between(1us, 300us) : random.between(300us, 20ms);
    incident.comes_back = !random.chance(150'000);
    if (random.chance(500'000)) plan.incidents.push_back(late_last_words(incident, random));
    plan.incidents.push_back(incident);
    if (incident.comes_back && random.chance(500'000)) plan.incidents.push_back(early_end(incident, random));
  }
  const auto late_copy = static_cast<std::uint32_t>(random.between(50'000, 300'000));
  const Duration longest = random.between(200us, 20ms);
  const bool overtaken = random.chance(500'000);
  for (HostNumber host = 0; host < hosts; ++host) {
    Impairment& impairment = network.port(host).out;
    impairment.late_copy = late_copy;
    impairment.late_copy_by = longest;
    if (!overtaken) continue;
    impairment.reorder = static_cast<std::uint32_t>(random.between(50'000, 300'000));
    impairment.reorder_by = longest;
  }
}

}  // namespace

std::vector<std::string_view> severity_names() { return {kNames.begin(), kNames.end()}; }

bool draw_severity(std::string_view name, SeededRandom& random, Severity& out) {
  // The severity is drawn even if it is given. So the numbers that are drawn later are the same in both
  // cases.
  const auto drawn = static_cast<Severity>(random.below(kNames.size()));
  out = drawn;
  if (name.empty() || name == "any") return true;
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  out = static_cast<Severity>(found - kNames.begin());
  return found != kNames.end();
}

FaultPlan draw_faults(Severity severity, std::uint32_t hosts, Duration horizon, Duration peer_timeout,
                      SimNetwork& network, SeededRandom& random) {
  FaultPlan plan;
  plan.severity = severity;
  plan.outage_min = peer_timeout / 2;
  if (severity == Severity::none) return plan;
  plan.lossy = !random.chance(150'000);
  for (RailNumber rail = 0; plan.lossy && rail < network.rails(); ++rail) {
    const bool alike = random.chance(300'000);
    const Impairment common = draw_impairment(random);
    for (HostNumber host = 0; host < hosts; ++host) {
      network.port(host, rail).out = alike ? common : draw_impairment(random);
      network.port(host, rail).in = alike ? common : draw_impairment(random);
    }
  }
  for (std::uint64_t left = random.below(7); left > 0; --left) {
    Incident incident = draw_incident(severity, hosts, horizon, peer_timeout, random);
    if (network.rails() > 1 && of_network(incident))
      draw_rail(incident, network.rails(), peer_timeout, random);
    plan.incidents.push_back(std::move(incident));
  }
  if (severity >= Severity::restarts && random.chance(600'000)) {
    draw_restarts(hosts, horizon, network, plan, random);
  }
  return plan;
}

void draw_ethertype_blocks(std::uint32_t hosts, Duration horizon, SimNetwork& network, FaultPlan& plan,
                           SeededRandom& random) {
  const auto draw_side = [&random] {
    return random.chance(500'000) ? SimNetwork::Side::out : SimNetwork::Side::in;
  };
  const std::uint32_t shut = random.chance(300'000) ? 500'000 : 0;
  for (RailNumber rail = 0; rail < network.rails(); ++rail) {
    for (HostNumber host = 0; host < hosts; ++host) {
      if (random.chance(shut)) network.block_ethertype(host, rail, draw_side(), true);
    }
  }
  for (Incident& incident : plan.incidents) {
    const bool spares = random.chance(300'000);
    if (incident.kind == Incident::Kind::cut) incident.cut.spares_ethertype = spares;
  }
  for (std::uint64_t left = random.below(5); left > 0; --left) {
    Incident incident;
    incident.kind = Incident::Kind::ethertype_blocked;
    incident.at = Time{} + random.between(Duration{0}, horizon);
    incident.duration = random.between(Duration{0}, horizon);
    incident.host = static_cast<HostNumber>(random.below(hosts));
    incident.rail = static_cast<RailNumber>(random.below(network.rails()));
    incident.side = draw_side();
    plan.incidents.push_back(incident);
  }
}

void draw_narrow_paths(std::uint32_t hosts, Duration horizon, const SimNetwork& network, FaultPlan& plan,
                       SeededRandom& random) {
  if (!random.chance(300'000)) return;
  for (std::uint64_t left = random.between(1, 3); left > 0; --left) {
    Incident incident;
    incident.kind = Incident::Kind::narrowed;
    if (random.chance(700'000)) incident.at = Time{} + random.between(Duration{0}, horizon);
    incident.duration = random.chance(500'000) ? horizon + 60s : random.between(Duration{0}, horizon);
    incident.host = static_cast<HostNumber>(random.below(hosts));
    incident.rail = static_cast<RailNumber>(random.below(network.rails()));
    plan.incidents.push_back(incident);
  }
}

/// Hosts that sleep or end do not tell their peers their new address. So runs with such hosts have no moves.
void draw_moves(std::uint32_t hosts, Duration horizon, const SimNetwork& network, FaultPlan& plan,
                SeededRandom& random) {
  using Kind = Incident::Kind;
  const auto prevents = [](const Incident& each) {
    return each.kind == Kind::stopped || each.kind == Kind::no_progress_thread;
  };
  if (plan.severity == Severity::none || plan.severity >= Severity::restarts) return;
  if (std::ranges::any_of(plan.incidents, prevents) || !random.chance(500'000)) return;
  // Only one host moves, because two hosts that move at the same time do not find each other.
  const auto host = static_cast<HostNumber>(random.below(hosts));
  for (std::uint64_t left = random.between(1, 4); left > 0; --left) {
    Incident incident;
    incident.kind = Kind::readdressed;
    incident.at = Time{} + random.between(Duration{0}, horizon);
    incident.duration = random.chance(500'000) ? horizon + 60s : random.between(1us, horizon);
    incident.host = host;
    incident.rail = static_cast<RailNumber>(random.below(network.rails()));
    plan.incidents.push_back(incident);
  }
}

Duration draw_reboot(Duration horizon, Duration peer_timeout, FaultPlan& plan, SeededRandom& random) {
  if (plan.severity != Severity::outage) return {};
  if (random.chance(500'000)) return random.chance(500'000) ? Duration{0} : random.between(2s, 12s);
  for (Incident& each : plan.incidents)
    if (of_network(each)) each.duration = std::min(each.duration, peer_timeout / 5);
  Incident reboot;
  reboot.kind = Incident::Kind::reboot;
  reboot.at = Time{} + random.between(Duration{0}, horizon);
  reboot.duration = random.chance(700'000) ? random.between(1s, 45s) : Duration(45s);
  reboot.no_carrier = random.chance(500'000);
  plan.lasts = reboot.at.time_since_epoch() + reboot.duration + random.between(1ms, 100ms);
  plan.incidents.push_back(reboot);
  return 60s;
}

void draw_answers(std::vector<HostProfile>& hosts, Duration horizon, Duration peer_timeout,
                  SimNetwork& network, FaultPlan& plan, SeededRandom& random) {
  using Kind = Incident::Kind;
  const bool filtered = random.chance(300'000);
  for (HostNumber number = 0; number < hosts.size(); ++number) {
    for (RailNumber rail = 0; rail < network.rails(); ++rail)
      network.port(number, rail).icmp_filtered = filtered;
    HostProfile& host = hosts[number];
    host.kernel_answers = random.chance(800'000);
    plan.answered.push_back(host.kernel_answers || !filtered);
  }
  for (Incident& incident : plan.incidents) {
    if (incident.kind == Kind::crash && incident.duration >= 1ms && random.chance(300'000))
      incident.kind = Kind::power_off;
    const bool for_long = incident.kind == Kind::stopped && random.chance(400'000);
    if (for_long && hosts[incident.host].kernel_answers) {
      incident.duration = random.between(peer_timeout / 2, 3 * peer_timeout);
      incident.at = Time{} + random.between(Duration{0}, horizon / 2);
    }
  }
}

void draw_device_removals(std::uint32_t hosts, Duration horizon, FaultPlan& plan, SeededRandom& random) {
  if (!random.chance(800'000)) return;
  for (std::uint64_t left = random.between(1, 6); left > 0; --left) {
    Incident incident;
    incident.kind = Incident::Kind::device_removed;
    incident.at = Time{} + random.between(Duration{0}, horizon);
    incident.duration = random.between(1us, horizon);
    incident.host = static_cast<HostNumber>(random.below(hosts));
    plan.incidents.push_back(incident);
  }
}

FaultSchedule::FaultSchedule(FaultPlan plan, Duration peer_timeout, Duration outage, EventQueue& event_queue,
                             Trace& trace, SimNetwork& network, Oracle& oracle,
                             std::vector<std::unique_ptr<SimHost>>& hosts)
    : plan_(std::move(plan)),
      event_queue_(event_queue),
      trace_(trace),
      network_(network),
      oracle_(oracle),
      hosts_(hosts),
      returning_(hosts.size()),
      set_back_(hosts.size()),
      deaths_(event_queue, oracle, hosts, {peer_timeout, outage, plan_.keyed}) {
  if (plan_.lasts != Duration{}) {
    oracle_.incarnations().expect_reboots(peer_timeout / 2);
  } else if (plan_.severity == Severity::outage) {
    oracle_.incarnations().expect_outages(plan_.outage_min);
  }
  for (std::size_t i = 0; i < plan_.incidents.size(); ++i) event_queue_.plan(plan_.incidents[i].at, *this, i);
}

void FaultSchedule::handle_event(std::uint64_t note) {
  if (healed_) return;
  const Incident& incident = plan_.incidents[note % kEnds];
  if (note >= kEnds) {
    end(incident);
    return report_connections();
  }
  begin(incident);
  report_connections();
  event_queue_.plan(event_queue_.now() + incident.duration, *this, note | kEnds);
}

void FaultSchedule::begin(const Incident& incident) {
  using Kind = Incident::Kind;
  SimHost& host = *hosts_[incident.host];
  switch (incident.kind) {
    case Kind::port_down:
      trace_.line("the port of host %u on rail %u goes down", incident.host, incident.rail);
      network_.port(incident.host, incident.rail).down = true;
      return;
    case Kind::cut:
      trace_.line("rail %u is cut", incident.cut.rail);
      return network_.partitions().add(incident.cut);
    case Kind::detour:
      trace_.line("what host %u sends takes a longer way", incident.host);
      return network_.detour(incident.host, event_queue_.now() + incident.duration, incident.longer_by);
    case Kind::ethertype_blocked:
      trace_.line("the EtherType path of host %u on rail %u is blocked", incident.host, incident.rail);
      return network_.block_ethertype(incident.host, incident.rail, incident.side, true);
    case Kind::narrowed:
      trace_.line("the path of host %u on rail %u narrows", incident.host, incident.rail);
      network_.port(incident.host, incident.rail).path_max = kNarrowPath;
      return;
    case Kind::reboot:
      trace_.line("all switches reboot");
      set_carrier(!incident.no_carrier);
      return network_.partitions().stop_all(true);
    case Kind::computing: return host.pause(incident.duration, SimHost::PauseKind::computing);
    case Kind::no_progress_thread:
      return host.pause(incident.duration, SimHost::PauseKind::no_progress_thread);
    case Kind::stopped:
      // With a key, a peer that has never met the process does not wait for it, even if the kernel says that
      // the process exists.
      if (plan_.keyed && incident.duration >= plan_.outage_min) oracle_.incarnations().hides(incident.host);
      return host.pause(incident.duration, SimHost::PauseKind::stopped);
    case Kind::clock_jump: return host.jump_clock(incident.duration);
    case Kind::readdressed:
      // A host that has not met this host would call the old address of this host.
      if (!has_met_all(incident.host)) return;
      trace_.line("host %u gets another address on rail %u", incident.host, incident.rail);
      return host.readdress(incident.rail, false);
    case Kind::device_removed:
      trace_.line("the device of host %u is removed", incident.host);
      return host.remove_device();
    case Kind::crash:
      if (!host.running()) return;
      kill(incident);
      break;
    case Kind::power_off:
      if (!host.running()) return;
      kill(incident);
      break;
    case Kind::crash_after_success:
      if (!host.running()) return;
      host.crash_after_success();
      break;
    case Kind::leave:
      if (!host.running() || host.exiting()) return;
      host.leave();
      break;
  }
  returning_[incident.host] = incident.comes_back;
  set_back_[incident.host] = incident.clock_set_back;
}

bool FaultSchedule::has_met_all(HostNumber host) const {
  for (HostNumber other = 0; other < hosts_.size(); ++other) {
    if (other == host) continue;
    if (!oracle_.incarnations().has_met(host, other) || !oracle_.incarnations().has_met(other, host))
      return false;
  }
  return true;
}

void FaultSchedule::set_carrier(bool carrier) {
  for (HostNumber host = 0; host < hosts_.size(); ++host) {
    for (RailNumber rail = 0; rail < network_.all_rails(); ++rail)
      network_.port(host, rail).carrier = carrier;
  }
}

void FaultSchedule::kill(const Incident& incident) {
  SimHost& host = *hosts_[incident.host];
  const bool powered = incident.kind != Incident::Kind::power_off;
  if (!host.exiting()) deaths_.killed(incident.host, powered && plan_.answered[incident.host]);
  host.crash(powered);
}

void FaultSchedule::end(const Incident& incident) {
  using Kind = Incident::Kind;
  SimHost& host = *hosts_[incident.host];
  switch (incident.kind) {
    case Kind::port_down:
      trace_.line("the port of host %u on rail %u comes up", incident.host, incident.rail);
      network_.port(incident.host, incident.rail).down = false;
      return;
    case Kind::cut:
      trace_.line("rail %u is whole again", incident.cut.rail);
      return network_.partitions().remove(incident.cut.rail);
    case Kind::ethertype_blocked:
      return network_.block_ethertype(incident.host, incident.rail, incident.side, false);
    case Kind::narrowed: network_.port(incident.host, incident.rail).path_max = SIZE_MAX; return;
    case Kind::readdressed:
      if (network_.port(incident.host, incident.rail).moves == 0) return;
      trace_.line("host %u has its first address on rail %u again", incident.host, incident.rail);
      return host.readdress(incident.rail, true);
    case Kind::device_removed:
      trace_.line("the device of host %u is back", incident.host);
      return host.return_device();
    case Kind::reboot:
      trace_.line("all switches are back");
      set_carrier(true);
      return network_.partitions().stop_all(false);
    case Kind::crash:
    case Kind::power_off:
    case Kind::crash_after_success:
    case Kind::leave:
      if (host.running() || !returning_[incident.host]) return;
      returning_[incident.host] = false;
      return host.start(incident.clock_set_back);
    default: return;
  }
}

/// Reports which hosts are connected. Sessions begin on the first rail, so only that one counts.
void FaultSchedule::report_connections() {
  for (HostNumber one = 0; one < hosts_.size(); ++one) {
    for (HostNumber other = 0; other < one; ++other) {
      const bool connected = network_.connects(one, other) && network_.connects(other, one);
      oracle_.incarnations().connection_changed(one, other, connected, event_queue_.now());
    }
  }
}

void FaultSchedule::heal() {
  trace_.line("everything is healed");
  healed_ = true;
  for (const auto& host : hosts_) {
    if (network_.joins_devices()) host->return_device();
  }
  network_.heal();
  report_connections();
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (!hosts_[i]->running() && returning_[i]) hosts_[i]->start(set_back_[i]);
    hosts_[i]->resume();
  }
}

}  // namespace cluster::sim
