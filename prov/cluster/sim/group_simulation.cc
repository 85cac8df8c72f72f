#include "sim/group_simulation.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "sim/failure.h"
#include "sim/security.h"

namespace cluster::sim {
namespace {

constexpr Duration kNoticeAfter = 800ms;  ///< from a death until others notice it
constexpr Duration kSettleMax = 60s;      ///< after the last fault
constexpr std::uint64_t kStepsMax = 20'000'000;

std::uint64_t note_of(int what, std::size_t host) { return static_cast<std::uint64_t>(what) << 32 | host; }

}  // namespace

GroupSimulation::GroupSimulation(const RunOptions& options)
    : seed_(options.seed), random_(SeededRandom::stream(options.seed, 'G')) {
  draw(options);
}

SocketAddress GroupSimulation::name_of(std::size_t host) const {
  const std::array<std::byte, 4> ip{std::byte{10}, std::byte{0}, static_cast<std::byte>(host >> 8),
                                    static_cast<std::byte>(host)};
  return SocketAddress::v4(ip.data(), 5000);
}

void GroupSimulation::plan(const Planned& event) {
  events_.plan(Time(event.at), *this, note_of(static_cast<int>(event.what), event.host));
}

void GroupSimulation::draw(const RunOptions& options) {
  const std::uint64_t shape = random_.below(10);
  plan_.hosts = options.hosts != 0 ? options.hosts
                : shape < 7        ? random_.between(2, 8)
                                   : random_.between(9, 64);
  plan_.senders = std::min<std::size_t>(plan_.hosts, random_.between(1, 3));
  plan_.posts = plan_.hosts > 16 ? random_.between(5, 20) : random_.between(10, 80);
  plan_.size_max = random_.chance(kMillion / 3) ? 400'000 : random_.chance(kMillion / 2) ? 20'000 : 200;
  plan_.roster = random_.chance(kMillion / 2);
  const bool bad = options.faults != "none" && random_.chance(kMillion * 3 / 4);
  if (bad) {
    faults_.loss = static_cast<std::uint32_t>(random_.below(100'000));
    faults_.duplicate = static_cast<std::uint32_t>(random_.below(20'000));
    faults_.corrupt = static_cast<std::uint32_t>(random_.below(10'000));
    faults_.delayed = static_cast<std::uint32_t>(random_.below(100'000));
    faults_.late_segment = static_cast<std::uint32_t>(random_.below(50'000));
    faults_.link_full = static_cast<std::uint32_t>(random_.below(50'000));
    faults_.pipe_max = random_.between(2, 64);
    plan_.deaf = random_.chance(kMillion / 4) ? 200'000 : 0;
  }
  plan_.end = random_.between(50ms, 1500ms);
  const std::size_t troubles = bad ? random_.below(5) : 0;
  for (std::size_t host = 0; host < plan_.hosts; ++host) {
    plan({random_.chance(kMillion / 4) ? random_.between(0ms, plan_.end) : random_.between(0us, 200us),
          What::join, host});
  }
  for (std::size_t i = 0; i < plan_.posts * plan_.senders; ++i) {
    plan({random_.between(1ms, plan_.end), What::post, random_.below(plan_.senders)});
  }
  constexpr std::array<What, 6> kTroubles{What::leave,  What::die,  What::freeze,
                                          What::freeze, What::hold, What::hold};
  for (std::size_t i = 0; i < troubles; ++i) {
    plan({random_.between(5ms, plan_.end), random_.pick(kTroubles), random_.below(plan_.hosts)});
  }
  plan({plan_.end + 1s, What::heal, 0});
  char text[200];
  std::snprintf(text, sizeof text,
                "%zu members, %zu senders, %zu messages of up to %zu bytes, %s, loss %.1f %%, %zu troubles",
                plan_.hosts, plan_.senders, plan_.posts * plan_.senders, plan_.size_max,
                plan_.roster ? "roster" : "announced", faults_.loss / 1e4, troubles);
  description_ = text;
  network_ = std::make_unique<GroupNetwork>(events_, faults_, seed_);
  hosts_.resize(plan_.hosts);
  draw_keys(options);
}

void GroupSimulation::draw_keys(const RunOptions& options) {
  profiles_.resize(plan_.hosts);
  SeededRandom random = SeededRandom::stream(seed_, 'K');
  const std::string security = draw_security(options.security, profiles_, random);
  if (security.empty()) return;
  description_ += ", " + security;
  std::vector<SocketAddress> names;
  for (std::size_t host = 0; host < plan_.hosts; ++host) names.push_back(name_of(host));
  attacker_ = std::make_unique<GroupAttacker>(*network_, std::move(names), SeededRandom::stream(seed_, 'A'));
  network_->set_tap(attacker_.get());
}

void GroupSimulation::join(std::size_t host) {
  if (hosts_[host] != nullptr) former_.push_back(std::move(hosts_[host]));
  GroupHostSettings settings{.name = name_of(host), .membership = ++memberships_, .role = {}};
  settings.credentials = profiles_[host].credentials;
  // Some hosts only receive, and tell the others less.
  settings.role.sends = host < plan_.senders || random_.chance(kMillion / 2);
  if (plan_.roster) {
    for (std::size_t other = 0; other < plan_.hosts; ++other) {
      if (other != host) settings.roster.push_back(name_of(other));
    }
  }
  const bool deaf = plan_.roster && random_.chance(plan_.deaf);
  hosts_[host] = std::make_unique<GroupHost>(settings, events_, *network_, oracle_, seed_);
  network_->attach(settings.name, *hosts_[host], deaf);
}

void GroupSimulation::post(std::size_t host) {
  if (hosts_[host] == nullptr || hosts_[host]->leaving()) return;
  constexpr std::array<group::Until, 3> kLevels{group::Until::copied, group::Until::arrived,
                                                group::Until::delivered};
  const std::size_t size =
      random_.between(kNumberedFrom, random_.chance(kMillion / 4) ? plan_.size_max : 100);
  hosts_[host]->post(size, random_.pick(kLevels));
}

void GroupSimulation::die(std::size_t host) {
  if (hosts_[host] == nullptr) return;
  oracle_.died(hosts_[host]->membership());
  network_->detach(name_of(host));
  hosts_[host]->freeze(kNever);
  former_.push_back(std::move(hosts_[host]));
  plan({events_.now().time_since_epoch() + kNoticeAfter, What::notice_death, host});
}

/// The flows of the other hosts have noticed that this host is dead.
void GroupSimulation::tell_deaths(std::size_t host) {
  if (hosts_[host] != nullptr) return;
  for (const std::unique_ptr<GroupHost>& other : hosts_) {
    if (other != nullptr) other->lose(name_of(host), Status::ended);
  }
}

void GroupSimulation::handle_event(std::uint64_t note) {
  const std::size_t host = note & 0xffffffff;
  GroupHost* const here = hosts_[host].get();
  switch (static_cast<What>(note >> 32)) {
    case What::post: return post(host);
    case What::join: return join(host);
    case What::die: return die(host);
    case What::notice_death: return tell_deaths(host);
    case What::leave:
      if (here == nullptr || here->leaving()) return;
      here->leave();
      if (random_.chance(kMillion / 2))
        plan({events_.now().time_since_epoch() + random_.between(1s, 2s), What::join, host});
      return;
    case What::freeze:
      if (here != nullptr) here->freeze(events_.now() + random_.between(1ms, 900ms));
      return;
    case What::hold:
      if (here != nullptr) here->hold(events_.now() + random_.between(1ms, 900ms));
      return;
    case What::heal: return network_->heal();
  }
}

/// Returns true if every message is over, and every member that leaves has left.
bool GroupSimulation::settled() const {
  return std::all_of(hosts_.begin(), hosts_.end(), [](const std::unique_ptr<GroupHost>& host) {
    return host == nullptr || (host->drained() && host->leaving() == host->left());
  });
}

RunReport GroupSimulation::run() {
  const Time begin(plan_.end + 3s);
  while (!events_.empty() && events_.next() < begin) events_.step();
  while (!events_.empty() && events_.next() < begin + kSettleMax && !settled()) {
    events_.step();
    if (events_.steps() > kStepsMax) throw LivenessFailure("the members never come to rest");
  }
  if (!settled()) throw LivenessFailure("a message is not over, or a member cannot leave");
  const Time end = events_.now() + 1s;  // messages with Until::copied arrive
  while (!events_.empty() && events_.next() < end) events_.step();
  oracle_.check_complete();
  RunReport report;
  report.description = description_;
  report.digest = events_.digest();
  report.messages = oracle_.messages();
  report.bytes = oracle_.bytes();
  for (const std::unique_ptr<GroupHost>& host : hosts_) {
    if (host == nullptr) continue;
    report.failures += host->failed();
    report.counters.refused_unsealed += host->counters().refused_unsealed;
    report.counters.refused_forged += host->counters().refused_forged;
    report.counters.refused_replayed += host->counters().refused_replayed;
  }
  report.steps = events_.steps();
  report.network.frames = network_->frames();
  report.duration = events_.now().time_since_epoch();
  return report;
}

}  // namespace cluster::sim
