#include "sim/simulation.h"

#include <algorithm>
#include <array>

#include "protocol/channel.h"
#include "sim/security.h"

namespace cluster::sim {
namespace {

constexpr std::uint64_t kStreamPlan = 5;
constexpr std::uint64_t kStreamRails = 7;
constexpr std::uint64_t kStreamEthertype = 8;
constexpr std::uint64_t kStreamAnswers = 10;
constexpr std::uint64_t kStreamSecurity = 20;
constexpr std::uint64_t kStreamAttacker = 21;
constexpr std::uint64_t kStreamNarrowPaths = 11;
constexpr std::uint64_t kStreamReboot = 12;
constexpr std::uint64_t kStreamMoves = 13;
constexpr std::uint64_t kStreamTranslator = 14;
constexpr std::uint64_t kStreamDeviceOwners = 31;
constexpr std::uint64_t kStreamQueuePairs = 32;
constexpr std::uint64_t kStreamDevicePorts = 33;
constexpr std::uint32_t kDeviceOwners = 800'000;  ///< of a million hosts
constexpr std::uint32_t kQueuePairs = 700'000;    ///< of a million runs with devices
constexpr std::uint32_t kPrefersDevice = 500'000;
constexpr std::uint32_t kLossyDevice = 300'000;
constexpr RailNumber kRailsMost = 4;
constexpr std::uint32_t kHostsMax = 8;
/// How long the recovery may take: the longest peer timeout, the longest back-off, and all frames under way
/// at the slowest rate.
constexpr Duration kRecoveryTime = 40s;
/// The peer timeout during a siege, which lasts for several of these timeouts.
constexpr Duration kBesiegedTimeout = 500ms;
/// The same with a translator. After a change of the port, a peer that waits sends a frame within 2 s
/// (network/session_table.h: kIdleBeforeWatch). Until then, frames to this peer are lost, siege or not. A peer
/// that waits for nobody sends nothing, so this siege lasts for one timeout only.
constexpr Duration kBesiegedTranslatedTimeout = 3s;
/// How long the siege has lasted when the other hosts start.
constexpr Duration kBesiegedBefore = 250ms;
/// No correct run has more events than this. If a run has more, something repeats forever.
constexpr std::uint64_t kStepsMax = 40'000'000;

std::uint32_t draw_hosts(std::uint32_t asked, SeededRandom& random) {
  const auto drawn = static_cast<std::uint32_t>(random.between(2, kHostsMax));
  return asked != 0 ? asked : drawn;
}

/// Most nodes have one rail. The number comes from a stream of its own, so that it does not change what else
/// is drawn.
RailNumber draw_rails(const RunOptions& options) {
  SeededRandom random = SeededRandom::stream(options.seed, kStreamRails);
  const auto drawn = random.chance(600'000) ? 1 : static_cast<RailNumber>(random.between(2, kRailsMost));
  return options.rails != 0 ? options.rails : drawn;
}

/// Returns true if the devices of the run carry frames. A relay or a translator knows no queue pairs.
bool draw_queue_pairs(const RunOptions& options, const WorkloadPlan& plan) {
  if (!options.devices || plan.datagrams || options.translator || options.relay) return false;
  return SeededRandom::stream(options.seed, kStreamQueuePairs).chance(kQueuePairs);
}

/// How many hosts are in the network, but not in the cluster.
std::uint32_t hosts_beside(const RunOptions& options) {
  return (options.attack != "none" ? 1 : 0) + (options.relay ? SimRelays::draw_count(options.seed) : 0);
}

}  // namespace

Simulation::Simulation(const RunOptions& options)
    : random_(SeededRandom::stream(options.seed, kStreamPlan)),
      host_count_(draw_hosts(options.hosts, random_)),
      plan_(draw_workload(options.workload, random_)),
      horizon_(random_.chance(700'000) ? random_.between(1ms, 30ms) : random_.between(30ms, 3s)),
      peer_timeout_(random_.chance(500'000) ? 3s : 10s),
      cluster_(options.seed, host_count_, plan_, draw_rails(options), hosts_beside(options),
               draw_queue_pairs(options, plan_)) {
  if (plan_.name.empty()) throw std::invalid_argument("no workload is called " + options.workload);
  if (!draw_severity(options.faults, random_, severity_)) {
    throw std::invalid_argument("no faults are called " + options.faults);
  }
  if (!attack_of(options.attack, attack_)) {
    throw std::invalid_argument("no attack is called " + options.attack);
  }
  if (!options.trace.empty() && !cluster_.trace.open(options.trace)) {
    throw std::invalid_argument("cannot write " + options.trace);
  }
  if (attack_ == AttackKind::siege) {
    peer_timeout_ = options.translator ? kBesiegedTranslatedTimeout : kBesiegedTimeout;
    horizon_ = options.translator ? peer_timeout_ : 4 * peer_timeout_;
  }
  draw_ports();
  FaultPlan faults = draw_faults(severity_, host_count_, horizon_, peer_timeout_, cluster_.network, random_);
  SeededRandom ethertype_random = SeededRandom::stream(options.seed, kStreamEthertype);
  draw_ethertype_blocks(host_count_, horizon_, cluster_.network, faults, ethertype_random);
  const RailNumber rails = cluster_.network.rails();
  description_ = std::to_string(host_count_) + " hosts" +
                 (rails == 1 ? "" : " on " + std::to_string(rails) + " rails") + ", " + plan_.name +
                 ", faults: " + std::string(severity_names()[static_cast<std::size_t>(severity_)]) +
                 (faults.lossy ? ", lossy, " : ", ") + std::to_string(faults.incidents.size()) + " incidents";
  for (HostNumber host = 0; host < host_count_; ++host) {
    profiles_.push_back(draw_profile());
    profiles_.back().ethertype = ethertype_random.chance(800'000);
    profiles_.back().settings.frame_lane = options.frame_lane;
  }
  SeededRandom narrow_random = SeededRandom::stream(options.seed, kStreamNarrowPaths);
  draw_narrow_paths(host_count_, horizon_, cluster_.network, faults, narrow_random);
  SeededRandom moves_random = SeededRandom::stream(options.seed, kStreamMoves);
  if (!plan_.datagrams && !options.relay)
    draw_moves(host_count_, horizon_, cluster_.network, faults, moves_random);
  SeededRandom reboot_random = SeededRandom::stream(options.seed, kStreamReboot);
  outage_ = draw_reboot(horizon_, peer_timeout_, faults, reboot_random);
  workload_lasts_ = std::max(horizon_, faults.lasts);
  if (faults.lasts != Duration{}) description_ += ", a reboot";
  for (HostProfile& profile : profiles_) profile.settings.outage = outage_;
  SeededRandom answers_random = SeededRandom::stream(options.seed, kStreamAnswers);
  draw_answers(profiles_, horizon_, peer_timeout_, cluster_.network, faults, answers_random);
  if (options.devices && !plan_.datagrams) draw_devices(options.seed, faults);
  SeededRandom security_random = SeededRandom::stream(options.seed, kStreamSecurity);
  const std::string security = draw_security(options.security, profiles_, security_random);
  faults.keyed = !security.empty();
  if (faults.keyed) {
    description_ += ", " + security;
    path_attacker_ = std::make_unique<PathAttacker>(cluster_.network, host_count_,
                                                    SeededRandom::stream(options.seed, kStreamAttacker));
    cluster_.network.set_tap(path_attacker_.get());
  }
  if (options.translator) add_translator(options.seed, faults);
  if (options.relay) add_relays(options.seed, faults);
  for (const HostProfile& profile : profiles_) cluster_.add_host(profile);
  faults_ =
      std::make_unique<FaultSchedule>(std::move(faults), peer_timeout_, outage_, cluster_.event_queue,
                                      cluster_.trace, cluster_.network, cluster_.oracle, cluster_.hosts);
  if (attack_ == AttackKind::none) return;
  attacker_ = std::make_unique<Attacker>(attack_, cluster_.event_queue, cluster_.network, host_count_,
                                         horizon_, options.seed);
  description_ += ", " + options.attack;
}

/// The endpoints do not ask the kernel of a translated host about its process, because another host may have
/// the address that the process lists. So a process there must not be stopped for long, and its death is
/// noticed later.
void Simulation::add_translator(std::uint64_t seed, FaultPlan& faults) {
  if (!faults.keyed) throw std::invalid_argument("a router may translate addresses only if there are keys");
  SeededRandom random = SeededRandom::stream(seed, kStreamTranslator);
  const auto host = static_cast<HostNumber>(random.below(host_count_));
  cluster_.network.set_translator(std::make_unique<Translator>(host, random));
  profiles_[host].kernel_answers = faults.answered[host] = false;
  for (Incident& incident : faults.incidents) {
    if (incident.host == host && incident.kind == Incident::Kind::stopped)
      incident.duration = std::min(incident.duration, peer_timeout_ / 4);
  }
  description_ += ", host " + std::to_string(host) + " behind a translator";
  // The calls of the host compete with the siege for space at host 0. Until host 0 has taken one, it does not
  // know the source of the host.
  if (attack_ == AttackKind::siege && host != 0) cluster_.oracle.incarnations().expect_no_contact(0, host);
}

/// The endpoints do not ask the kernel of a host that they reach through a relay. So its processes must not
/// be stopped for long, and a death is noticed later.
void Simulation::add_relays(std::uint64_t seed, FaultPlan& faults) {
  if (!faults.keyed) throw std::invalid_argument("there may be relays only if there are keys");
  if (attack_ != AttackKind::none || cluster_.network.translates())
    throw std::invalid_argument("relays go with no attack and no translator");
  relays_ = std::make_unique<SimRelays>(cluster_.event_queue, cluster_.network, cluster_.trace, host_count_,
                                        SimRelays::draw_count(seed), *profiles_.front().credentials, horizon_,
                                        seed);
  for (HostNumber host = 0; host < host_count_; ++host) {
    profiles_[host].relays = relays_->addresses();
    profiles_[host].kernel_answers = faults.answered[host] = false;
  }
  for (Incident& incident : faults.incidents) {
    if (incident.kind == Incident::Kind::stopped)
      incident.duration = std::min(incident.duration, peer_timeout_ / 4);
  }
  description_ += ", " + relays_->description();
}

void Simulation::draw_ports() {
  for (RailNumber rail = 0; rail < cluster_.network.rails(); ++rail) {
    constexpr std::array<std::uint64_t, 4> rates{1'000'000'000, 10'000'000'000, 40'000'000'000,
                                                 100'000'000'000};
    const std::uint64_t common = random_.pick(rates);
    const Duration delay =
        random_.chance(700'000) ? random_.between(200ns, 20us) : random_.between(20us, 500us);
    const bool shallow = random_.chance(300'000);
    for (HostNumber host = 0; host < host_count_; ++host) {
      Port& port = cluster_.network.port(host, rail);
      port.bits_per_second = random_.chance(200'000) ? random_.pick(rates) : common;
      port.delay = delay;
      port.send_queue_bytes = random_.between(64, 1024) * 1024;
      port.switch_queue_bytes = shallow ? random_.between(20, 64) * 1024 : random_.between(64, 1024) * 1024;
      port.ring_frames = random_.between(64, 2048);
    }
  }
}

void Simulation::draw_devices(std::uint64_t seed, FaultPlan& faults) {
  SeededRandom owners_random = SeededRandom::stream(seed, kStreamDeviceOwners);
  for (HostProfile& profile : profiles_) profile.device = owners_random.chance(kDeviceOwners);
  description_ += ", devices";
  if (!cluster_.network.joins_devices()) return;
  description_ += " with queue pairs";
  SeededRandom random = SeededRandom::stream(seed, kStreamDevicePorts);
  const bool lossy = severity_ != Severity::none && random.chance(kLossyDevice);
  const Duration delay = random.between(200ns, 20us);
  for (HostNumber host = 0; host < host_count_; ++host) {
    constexpr std::array<std::size_t, 4> longest{1024, 1024, 2048, 4096};
    profiles_[host].device_frame_max = random.pick(longest);
    profiles_[host].prefers_device = random.chance(kPrefersDevice);
    Port& port = cluster_.network.port(host, cluster_.network.device_rail());
    constexpr std::array<std::uint64_t, 3> rates{1'000'000'000, 10'000'000'000, 100'000'000'000};
    port.bits_per_second = random.pick(rates);
    port.delay = delay;
    port.send_queue_bytes = random.between(64, 256) * 1024;
    port.ring_frames = random.between(64, 512);
    if (lossy) port.out.loss = static_cast<std::uint32_t>(random.below(20'000));
  }
  draw_device_removals(host_count_, horizon_, faults, random);
}

HostProfile Simulation::draw_profile() {
  HostProfile profile;
  constexpr std::array<std::size_t, 5> frames{1472, 1472, 1472, 1232, 8972};
  profile.frame_max = random_.pick(frames);
  profile.poll_gap = random_.chance(800'000) ? random_.between(100ns, 2us) : random_.between(2us, 200us);
  profile.frame_cost = random_.between(0ns, 400ns);
  profile.clock_ahead = random_.between(1s, 1'000'000s);
  if (random_.chance(300'000)) profile.linger = random_.between(0us, 3ms);
  transport::EngineSettings& settings = profile.settings;
  settings.net_eager_max = random_.pick(std::array<std::size_t, 6>{0, 256, 4096, 16384, 65536, 65536});
  settings.eager_credit =
      random_.pick(std::array<std::size_t, 4>{64 * 1024, 256 * 1024, 2048 * 1024, 2048 * 1024});
  settings.pull_window = random_.pick(std::array<std::size_t, 3>{64 * 1024, 256 * 1024, 1024 * 1024});
  settings.unexpected_max = random_.pick(std::array<std::size_t, 4>{16, 256, 1 << 20, 1 << 20});
  settings.tx_requests_max = random_.pick(std::array<std::size_t, 4>{4, 64, 4096, 4096});
  if (plan_.unexpected_max != 0) settings.unexpected_max = plan_.unexpected_max;
  if (plan_.one_frame) settings.net_eager_max = 16384;
  settings.flow_window = random_.pick(std::array<std::uint16_t, 5>{8, 33, 128, 512, 512});
  settings.ack_delay = random_.between(5us, 250us);
  settings.peer_timeout = peer_timeout_;
  settings.outage = 0s;
  settings.end_abandoned = false;
  return profile;
}

void Simulation::run_until(Time limit, const char* awaited, bool (Simulation::*reached)()) {
  while (!(this->*reached)()) {
    if (cluster_.event_queue.empty() || cluster_.event_queue.next() > limit) {
      throw LivenessFailure(std::string(cluster_.event_queue.empty() ? "no event is left before "
                                                                     : "too much time has passed before ") +
                            awaited + ": " + cluster_.oracle.unfinished() + ", " + cluster_.rma.unfinished() +
                            ", " + cluster_.atomics.unfinished());
    }
    // Checking costs more than a step.
    for (int i = 0; i < 64 && !cluster_.event_queue.empty() && cluster_.event_queue.next() <= limit; ++i)
      cluster_.event_queue.step();
    if (cluster_.event_queue.steps() > kStepsMax)
      throw LivenessFailure(std::string("no end of events before ") + awaited);
  }
}

bool Simulation::all_finished() {
  return std::all_of(cluster_.hosts.begin(), cluster_.hosts.end(), [](const auto& host) {
    return !host->running() || host->exiting() || host->application().finished();
  });
}

bool Simulation::all_delivered() {
  for (HostNumber host = 0; host < host_count_; ++host) {
    if (!cluster_.hosts[host]->running() || cluster_.hosts[host]->exiting()) continue;
    if (!cluster_.hosts[host]->application().all_sent()) return false;
    if (cluster_.oracle.undelivered(host, false) + cluster_.oracle.undelivered(host, true) != 0) return false;
  }
  return true;
}

bool Simulation::all_idle() {
  return std::all_of(cluster_.hosts.begin(), cluster_.hosts.end(), [](const auto& host) {
    return !host->running() || host->exiting() || host->application().idle();
  });
}

bool Simulation::all_exited() {
  return std::none_of(cluster_.hosts.begin(), cluster_.hosts.end(),
                      [](const auto& host) { return host->running(); });
}

void Simulation::run_workload() {
  const Time end = Time{} + workload_lasts_;
  while (!cluster_.event_queue.empty() && cluster_.event_queue.next() <= end) {
    cluster_.event_queue.step();
    if (cluster_.event_queue.steps() % 1024 == 0 && severity_ == Severity::none && all_finished()) break;
    if (cluster_.event_queue.steps() > kStepsMax) throw LivenessFailure("no end of events in the workload");
  }
}

RunReport Simulation::run() {
  const bool staggered = random_.chance(300'000);
  for (const auto& host : cluster_.hosts) {
    // Some hosts send before others have an endpoint.
    if (staggered) cluster_.run_for(random_.between(0us, 3ms));
    host->start();
    if (attack_ == AttackKind::siege && host == cluster_.hosts.front()) cluster_.run_for(kBesiegedBefore);
  }
  run_workload();
  if (attacker_ != nullptr) attacker_->stop();
  faults_->heal();
  if (relays_ != nullptr) relays_->heal();
  cluster_.devices.heal();
  for (const auto& host : cluster_.hosts) {
    if (!host->running()) continue;
    host->application().finish();
    host->wake_now();
  }
  const Time healed = cluster_.event_queue.now();
  const Duration recovery = kRecoveryTime + outage_;  // a host that hears nobody may wait for the outage
  run_until(healed + recovery, "every message has arrived", &Simulation::all_delivered);
  for (const auto& host : cluster_.hosts) {
    if (!host->running()) continue;
    host->application().cancel_receives();
    host->wake_now();
  }
  run_until(healed + 2 * recovery, "every operation has ended", &Simulation::all_idle);
  run_until(healed + 3 * recovery, "the network falls silent", &Simulation::silent);
  cluster_.oracle.check_complete();
  cluster_.rma.check_complete();
  cluster_.atomics.check_complete();
  check_datagrams();
  check_memory();
  check_windows();
  check_retransmissions();
  check_credit();
  check_store();
  check_queue_pairs();
  check_attack();
  for (const auto& host : cluster_.hosts) {
    host->leave();
    cluster_.run_for(random_.between(0us, 200us));
  }
  run_until(cluster_.event_queue.now() + kRecoveryTime, "every process has left", &Simulation::all_exited);
  run_until(cluster_.event_queue.now() + kRecoveryTime, "the last frame has arrived", &Simulation::silent);
  return report();
}

/// Checks that each datagram that an engine has read was received or counted as dropped. A process that is
/// killed takes some datagrams with it, so runs with such processes are not checked.
void Simulation::check_datagrams() const {
  if (severity_ >= Severity::restarts) return;
  const std::uint64_t dropped = cluster_.counters().datagrams_dropped;
  const std::uint64_t arrivals = cluster_.oracle.totals().datagram_arrivals;
  const std::uint64_t deliveries = cluster_.oracle.totals().datagram_deliveries;
  if (arrivals == deliveries + dropped) return;
  throw SafetyFailure("engines read " + std::to_string(arrivals) + " datagrams, of which " +
                      std::to_string(deliveries) + " were received and " + std::to_string(dropped) +
                      " dropped");
}

/// The memory of an engine is bounded by its settings and the number of its peers, whatever happens.
void Simulation::check_memory() const {
  for (HostNumber host = 0; host < host_count_; ++host) {
    const transport::EngineSettings& settings = profiles_[host].settings;
    const std::size_t window = settings.flow_window * (2 * profiles_[host].frame_max + 1024);
    // Each rail remembers what travels on it.
    const std::size_t rails = cluster_.network.all_rails() * (64 * settings.flow_window + 8 * 1024);
    const std::size_t peer = 2 * window + 2 * settings.eager_credit + rails + 64 * 1024;
    // What unknown sources may make an engine keep (AdmissionControl).
    const std::size_t unknown = attacker_ == nullptr ? 0 : 16 * 1024 * 1024;
    const std::size_t bound =
        host_count_ * peer + settings.tx_requests_max * 1024 + 4 * 1024 * 1024 + unknown;
    if (cluster_.hosts[host]->memory().peak() <= bound) continue;
    throw SafetyFailure("host " + std::to_string(host) + " used " +
                        std::to_string(cluster_.hosts[host]->memory().peak()) +
                        " bytes of memory, more than its bound of " + std::to_string(bound));
  }
}

/// Peers keep within each other's windows, and acknowledge only what was sent.
void Simulation::check_windows() const {
  const std::uint64_t refused = cluster_.counters().refused_window;
  if (refused == 0 || attacker_ != nullptr) return;
  throw SafetyFailure(std::to_string(refused) + " frames lay outside their receiver's window");
}

/// Only missing frames are retransmitted. A frame that the network lost or damaged may cost two
/// retransmissions, a delayed frame one, and so may each timeout. The rest of the bound is for peers that
/// are away and answer late.
void Simulation::check_retransmissions() const {
  constexpr std::uint64_t always = 500;
  constexpr std::uint64_t one_in = 50;
  const NetworkTotals& network = cluster_.network.totals();
  const Counters counters = cluster_.counters();
  const std::uint64_t dropped = relays_ != nullptr ? relays_->dropped() : 0;
  const std::uint64_t bound = 2 * (network.gone() + dropped) + network.reordered + counters.timeouts +
                              always + network.frames / one_in;
  // A message that finds no space at its receiver is retransmitted until there is space.
  if (counters.frames_retransmitted <= bound || counters.unexpected_full != 0) return;
  throw SafetyFailure(std::to_string(counters.frames_retransmitted) + " frames were sent again though of " +
                      std::to_string(network.frames) + " only " + std::to_string(network.gone()) +
                      " were lost and " + std::to_string(network.reordered) + " late");
}

/// While no message is stored, all credit has been returned. Each side of an undisturbed session may then
/// send nearly all that its peer grants. A host may still have a session with an incarnation that has ended,
/// because it need not know of the end.
void Simulation::check_credit() const {
  const Incarnations& incarnations = cluster_.oracle.incarnations();
  std::vector<engine::EndpointStats> seen;
  for (const auto& host : cluster_.hosts) {
    seen.push_back(host->running() ? host->stats() : engine::EndpointStats{});
  }
  for (HostNumber host = 0; host < host_count_; ++host) {
    for (const engine::PeerStats& peer : seen[host].peers) {
      const std::string between = "host " + std::to_string(host) + " and " + peer.name.text();
      if (peer.unexpected == 0 && peer.credit_owed != 0) {
        throw SafetyFailure(between + ": " + std::to_string(peer.credit_owed) +
                            " bytes of credit were never given back");
      }
      const HostNumber other = host_of(peer.name);
      if (other >= host_count_) continue;
      const bool undisturbed =
          seen[host].counters.sessions_closed + seen[other].counters.sessions_closed == 0 &&
          cluster_.hosts[other]->running() && peer.flow && other != host &&
          incarnations.has_met(host, other) && incarnations.has_met(other, host);
      if (!undisturbed) continue;
      const auto back = std::find_if(seen[other].peers.begin(), seen[other].peers.end(),
                                     [&](const auto& p) { return p.name == address_of(host); });
      if (back == seen[other].peers.end()) continue;
      const std::uint64_t least = profiles_[other].settings.eager_credit / 4 * 3;
      if (peer.credit_left + back->credit_owed >= std::min(least, protocol::kInitialCredit)) continue;
      throw SafetyFailure(between + ": only " + std::to_string(peer.credit_left) +
                          " bytes of credit are left");
    }
  }
}

/// The two sides of an undisturbed session know each other's present queue pairs, even if both have new ones.
void Simulation::check_queue_pairs() {
  for (HostNumber host = 0; host < host_count_; ++host) {
    if (!cluster_.hosts[host]->running()) continue;
    const engine::EndpointStats seen = cluster_.hosts[host]->stats();
    for (const engine::PeerStats& peer : seen.peers) {
      if (!peer.flow) continue;
      for (const multipath::PathStats& path : peer.flow->paths) {
        if (!path.to.verbs() || !undisturbed(host, seen, host_of(path.to))) continue;
        const SocketAddress present =
            cluster_.network.present_address(host_of(path.to), cluster_.network.device_rail());
        if (path.to == present) continue;
        throw SafetyFailure("host " + std::to_string(host) + " still has a path to " + path.to.text() +
                            ", although the peer has announced " + present.text());
      }
    }
  }
}

/// Returns true if both hosts have the session in which they have met.
bool Simulation::undisturbed(HostNumber host, const engine::EndpointStats& seen, HostNumber other) const {
  const Incarnations& incarnations = cluster_.oracle.incarnations();
  return seen.counters.sessions_closed == 0 && cluster_.hosts[other]->running() &&
         cluster_.hosts[other]->stats().counters.sessions_closed == 0 && incarnations.has_met(host, other) &&
         incarnations.has_met(other, host);
}

/// A host that only receives stores no more messages than its settings allow.
void Simulation::check_store() const {
  constexpr HostNumber sink = 0;
  if (!plan_.one_frame || cluster_.hosts[sink]->most_unexpected() <= plan_.unexpected_max) return;
  throw SafetyFailure("host 0 stored " + std::to_string(cluster_.hosts[sink]->most_unexpected()) +
                      " messages, but may store " + std::to_string(plan_.unexpected_max));
}

/// If the run has no faults, the attack must end no session. But with a translator, a siege may
/// (add_translator()).
void Simulation::check_attack() const {
  if (attacker_ == nullptr) return;
  if (!attacker_->violation().empty()) throw SafetyFailure(attacker_->violation());
  const std::uint64_t closed = cluster_.counters().sessions_closed;
  if (severity_ != Severity::none || attack_ == AttackKind::flooder || closed == 0) return;
  if (attack_ == AttackKind::siege && cluster_.network.translates()) return;
  throw SafetyFailure(std::to_string(closed) + " sessions were ended by forged frames");
}

RunReport Simulation::report() const {
  RunReport report;
  report.description = description_;
  report.digest = cluster_.event_queue.digest();
  report.messages = cluster_.oracle.messages();
  report.delivered = cluster_.oracle.totals().delivered;
  report.bytes = cluster_.oracle.totals().delivered_bytes;
  report.failures = cluster_.oracle.totals().failures;
  report.histories = cluster_.atomics.histories();
  report.steps = cluster_.event_queue.steps();
  report.duration = cluster_.event_queue.now().time_since_epoch();
  report.network = cluster_.network.totals();
  report.counters = cluster_.counters();
  return report;
}

}  // namespace cluster::sim
