#include "sim/connection_simulation.h"

#include <algorithm>
#include <stdexcept>

#include "sim/failure.h"

namespace cluster::sim {
namespace {

constexpr std::uint64_t kStepsMax = 20'000'000;
constexpr Duration kRecoveryTime = 40s;
constexpr Duration kAnswersAfterMax = 300ms;
constexpr Duration kStaysOpen = 1h;  ///< longer than any run

}  // namespace

ConnectionSimulation::ConnectionSimulation(const RunOptions& options)
    : random_(SeededRandom::stream(options.seed, 'C')) {
  if (!options.trace.empty() && !trace_.open(options.trace))
    throw std::invalid_argument("cannot write " + options.trace);
  draw(options);
}

void ConnectionSimulation::plan(Duration after, What what, std::uint64_t detail) {
  events_.plan(events_.now() + after, *this, static_cast<std::uint64_t>(what) << 32 | detail);
}

void ConnectionSimulation::draw(const RunOptions& options) {
  if (!draw_severity(options.faults, random_, severity_))
    throw std::invalid_argument("unknown faults: " + options.faults);
  const auto count = options.hosts != 0 ? options.hosts : static_cast<std::uint32_t>(random_.between(3, 12));
  passives_ = count > 5 && random_.chance(kMillion / 3) ? 2 : 1;
  horizon_ = random_.between(20ms, 3s);
  peer_timeout_ = random_.between(1s, 3s);
  network_ = std::make_unique<SimNetwork>(events_, trace_, options.seed, count, 1);
  // The incidents that are drawn here are for other hosts (SimHost). Only the impairments of cables are
  // used.
  draw_faults(std::min(severity_, Severity::network), count, horizon_, peer_timeout_, *network_, random_);
  transport::EngineSettings settings;
  settings.peer_timeout = peer_timeout_;
  settings.refresh_interval = settings.outage = settings.linger = Duration{0};
  settings.eager_credit = random_.between(16, 512) * 1024;
  const ConnectionWorld world{events_, *network_, trace_, oracle_, options.seed, settings, requests_};
  for (HostNumber host = 0; host < count; ++host)
    hosts_.push_back(std::make_unique<ConnectionHost>(world, host));
  const std::uint64_t dials = random_.between(3, 40);
  for (std::uint64_t i = 0; i < dials; ++i) plan(random_.between(Duration{0}, horizon_), What::dial);
  std::uint64_t troubles = 0;
  const auto trouble = [&](Severity from, What what, std::uint64_t most) {
    if (severity_ < from) return;
    for (std::uint64_t left = random_.below(most + 1); left > 0; --left, ++troubles)
      plan(random_.between(Duration{0}, horizon_), what);
  };
  trouble(Severity::hosts, What::pause, 4);
  trouble(Severity::restarts, What::kill, 8);
  trouble(Severity::restarts, What::close_passive, 3);
  trouble(Severity::outage, What::cut, 2);
  description_ = std::to_string(count) + " hosts, " + std::to_string(passives_) + " listen, " +
                 std::to_string(dials) +
                 " attempts, faults: " + std::string(severity_names()[static_cast<std::size_t>(severity_)]) +
                 ", " + std::to_string(troubles) + " incidents";
}

ConnectionScript ConnectionSimulation::draw_script() {
  ConnectionScript script;
  script.early_receives = static_cast<std::uint32_t>(random_.below(6));
  script.late_receives = static_cast<std::uint32_t>(random_.below(12));
  script.sends = static_cast<std::uint32_t>(random_.below(12));
  script.pace = random_.chance(kMillion / 2) ? random_.between(1us, 100us) : random_.between(100us, 20ms);
  if (random_.chance(kMillion * 3 / 4)) script.lasts = random_.between(100us, 500ms);
  script.stays = random_.chance(kMillion / 6) ? kStaysOpen : random_.between(Duration{0}, 20ms);
  script.closes = random_.chance(kMillion / 2);
  return script;
}

/// Returns a host without an endpoint, or null. If the endpoint is for a request, its address must not be
/// that of an asker whose request has no answer yet. Otherwise two ends whose askers are gone could take
/// each other for the askers.
ConnectionHost* ConnectionSimulation::free_host(bool for_request) {
  std::vector<ConnectionHost*> free;
  for (const auto& host : hosts_) {
    const SocketAddress name = address_of(host->number());
    const bool has_asked =
        std::ranges::any_of(requests_,
                            [&](const PendingRequest& each) { return each.request.asker == name; }) ||
        std::ranges::any_of(hosts_, [&](const auto& each) { return each->waits_for(name); });
    if (host->number() >= passives_ && host->free() && !(for_request && has_asked))
      free.push_back(host.get());
  }
  return free.empty() ? nullptr : free[random_.below(free.size())];
}

void ConnectionSimulation::listen_again() {
  for (HostNumber host = 0; host < passives_; ++host) {
    if (hosts_[host]->free()) hosts_[host]->listen();
  }
}

void ConnectionSimulation::dial() {
  ConnectionHost* const asker = free_host(false);
  if (asker == nullptr || finishing_) return;
  asker->dial(*hosts_[random_.below(passives_)], draw_script());
}

/// Answers the oldest request, if there is one, and plans the next answer.
void ConnectionSimulation::answer() {
  plan(random_.between(1us, 5ms), What::answer);
  if (requests_.empty()) return;
  const PendingRequest pending = requests_.front();
  ConnectionHost& passive = *hosts_[pending.passive];
  ConnectionHost* const taker = free_host(true);
  requests_.erase(requests_.begin());
  if (taker == nullptr || random_.chance(kMillion / 6)) {
    passive.reject(pending, ConnectionOracle::data_of(pending.attempt));
  } else {
    taker->take(pending, draw_script());
    passive.hand_over(pending, taker->number());
    const bool at_once = random_.chance(kMillion / 2);
    plan(at_once ? Duration{0} : random_.between(Duration{0}, kAnswersAfterMax), What::accept,
         pending.attempt);
  }
}

/// Accepts the request of an attempt. Its endpoint may have been closed or killed meanwhile.
void ConnectionSimulation::accept(ConnectionOracle::Attempt attempt) {
  for (const auto& host : hosts_) {
    if (host->may_accept(attempt)) return host->accept();
  }
}

void ConnectionSimulation::kill() {
  ConnectionHost& host = *hosts_[random_.below(hosts_.size())];
  if (host.free()) return;
  host.kill();
  if (random_.chance(kMillion / 2)) listen_again();  // otherwise hosts listen again only at the end
}

void ConnectionSimulation::cut() {
  oracle_.network_fails();
  Cut cut{0, std::vector<bool>(hosts_.size()), std::vector<bool>(hosts_.size())};
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    cut.from[i] = random_.chance(kMillion / 2);
    cut.to[i] = !cut.from[i];
  }
  network_->partitions().add(std::move(cut));
  plan(random_.between(peer_timeout_ / 2, 2 * peer_timeout_), What::join);
}

void ConnectionSimulation::handle_event(std::uint64_t note) {
  switch (static_cast<What>(note >> 32)) {
    case What::dial: return dial();
    case What::answer: return answer();
    case What::accept: return accept(static_cast<ConnectionOracle::Attempt>(note & 0xffffffff));
    case What::kill: return finishing_ ? void() : kill();
    case What::close_passive:
      if (!finishing_ && hosts_[0]->listens()) hosts_[0]->close();
      return;
    case What::pause:
      if (!finishing_)
        hosts_[random_.below(hosts_.size())]->pause(events_.now() + random_.between(1ms, 3 * peer_timeout_));
      return;
    case What::cut: return finishing_ ? void() : cut();
    case What::join: return network_->partitions().clear();
  }
}

template <typename Reached>
void ConnectionSimulation::run_until(Duration limit, const char* awaited, Reached&& reached) {
  const Time end = events_.now() + limit;
  while (!reached()) {
    if (events_.next() > end || events_.steps() > kStepsMax) {
      oracle_.check_complete();
      throw LivenessFailure(std::string("it does not happen that ") + awaited);
    }
    events_.step();
  }
}

void ConnectionSimulation::run_for(Duration duration) {
  const Time end = events_.now() + duration;
  while (events_.next() < end) events_.step();
}

/// Shuts down every end whose connection is not over.
void ConnectionSimulation::finish() {
  for (const auto& host : hosts_) {
    if (host->is_end()) host->shut_down();
  }
}

RunReport ConnectionSimulation::run() {
  listen_again();
  answer();
  run_for(horizon_);
  finishing_ = true;
  network_->heal();
  listen_again();
  for (const auto& host : hosts_) host->finish();
  run_for(1s);  // requests that are under way arrive, and are accepted
  run_until(kRecoveryTime, "every attempt is decided, and each end knows of the end of the other",
            [this] { return oracle_.settled(); });
  finish();
  run_until(kRecoveryTime, "every end is over", [this] { return oracle_.settled(); });
  RunReport report;
  run_for(1s);  // operations that are under way end
  oracle_.check_complete();
  for (const auto& host : hosts_) {
    if (!host->free()) host->close();
  }
  run_until(kRecoveryTime, "every process has ended",
            [this] { return std::ranges::all_of(hosts_, [](const auto& host) { return host->free(); }); });
  report.description = description_;
  report.digest = events_.digest();
  report.messages = oracle_.messages();
  report.delivered = oracle_.established();
  report.bytes = oracle_.bytes();
  report.steps = events_.steps();
  report.network = network_->totals();
  report.duration = events_.now().time_since_epoch();
  return report;
}

}  // namespace cluster::sim
