#include "sim/death_watch.h"

#include <algorithm>
#include <string>

namespace cluster::sim {

std::vector<DeathWatch::Witness> DeathWatch::witnesses_of(HostNumber sender, HostNumber dead) const {
  const Incarnations& incarnations = oracle_.incarnations();
  std::vector<Witness> witnesses;
  for (HostNumber host = 0; host < hosts_.size(); ++host) {
    if (host == sender || host == dead || !incarnations.alive(host)) continue;
    if (incarnations.has_met(sender, host) && incarnations.has_met(host, sender))
      witnesses.push_back({host, incarnations.of(host)});
  }
  return witnesses;
}

/// Returns true if a witness could answer the sender all the time since the death.
bool DeathWatch::hears_others(HostNumber sender, const Death& death,
                              const std::vector<Witness>& witnesses) const {
  const Incarnations& incarnations = oracle_.incarnations();
  return std::ranges::any_of(witnesses, [&](const Witness& witness) {
    return incarnations.alive(witness.host) && incarnations.of(witness.host) == witness.incarnation &&
           !hosts_[witness.host]->away_since(death.at) && !hosts_[witness.host]->exiting() &&
           !incarnations.cut_off(sender, witness.host, death.at);
  });
}

void DeathWatch::killed(HostNumber host, bool answered) {
  const Incarnations& incarnations = oracle_.incarnations();
  Death death{host, incarnations.of(host), event_queue_.now(), {}, {}};
  for (MessageNumber number = 1; number <= oracle_.messages(); ++number) {
    const Message& message = oracle_.message(number);
    const bool awaited = message.to == host && message.from != host && !message.datagram;
    if (!awaited || message.state != Message::State::under_way) continue;
    const bool met = incarnations.has_met(message.from, host);
    if (limits_.keyed && !met) continue;
    // If the sender has not met the process, an answer of the process's kernel does not end its sends.
    answered = answered && met;
    death.awaited.push_back({number, witnesses_of(message.from, host)});
  }
  if (death.awaited.empty()) return;
  const Time silent = death.at + limits_.silent + kSilentSlack + (limits_.keyed ? kKeptLongest : Duration{0});
  const Duration outage = limits_.outage == Duration{0} ? Duration{0} : limits_.outage + kRebootLongest;
  death.checks = {death.at + kAnsweredWithin, silent, silent + outage};
  event_queue_.plan(answered ? death.checks[0] : death.checks[1], *this, deaths_.size());
  deaths_.push_back(std::move(death));
}

/// Checks the sends that awaited the dead process. If the network between the two was down meanwhile, the
/// host's answer may have been lost, so the sends are checked again later.
void DeathWatch::handle_event(std::uint64_t note) {
  const Death& death = deaths_[note];
  const Time now = event_queue_.now();
  const auto next = std::ranges::upper_bound(death.checks, now);
  const bool last = next == death.checks.end();
  bool again = false;
  const Incarnations& incarnations = oracle_.incarnations();
  if (incarnations.alive(death.host) || incarnations.of(death.host) != death.incarnation) return;
  for (const Awaited& awaited : death.awaited) {
    const Message& message = oracle_.message(awaited.message);
    const bool sender_lives =
        incarnations.alive(message.from) && incarnations.of(message.from) == message.from_incarnation;
    if (message.state != Message::State::under_way || !sender_lives) continue;
    if (hosts_[message.from]->away_since(death.at)) continue;
    if (last && incarnations.cut_off(message.from, death.host)) continue;
    const bool interrupted = incarnations.cut_off(message.from, death.host, death.at);
    const bool outage = limits_.outage != Duration{0} && now >= death.checks[1] &&
                        !hears_others(message.from, death, awaited.witnesses);
    if (!last && (interrupted || outage)) {
      again = true;
      continue;
    }
    throw LivenessFailure("host " + std::to_string(message.from) +
                          " has not noticed that the process of host " + std::to_string(death.host) +
                          " was killed " + std::to_string((now - death.at).count() / 1'000'000) + " ms ago");
  }
  if (again) event_queue_.plan(*next, *this, note);
}

}  // namespace cluster::sim
