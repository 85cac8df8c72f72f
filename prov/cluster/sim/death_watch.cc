#include "sim/death_watch.h"

#include <string>

namespace cluster::sim {

void DeathWatch::killed(HostNumber host, bool answered) {
  const Incarnations& incarnations = oracle_.incarnations();
  const Duration kept = keyed_ ? kKeptLongest : Duration{0};
  Death death{host, incarnations.of(host), event_queue_.now(), {}, silent_ + kSilentSlack + kept};
  for (MessageNumber number = 1; number <= oracle_.messages(); ++number) {
    const Message& message = oracle_.message(number);
    const bool awaited = message.to == host && message.from != host && !message.datagram;
    if (!awaited || message.state != Message::State::under_way) continue;
    const bool met = incarnations.has_met(message.from, host);
    if (keyed_ && !met) continue;
    // Until a peer has answered, what its kernel says does not end what waits for it.
    answered = answered && met;
    death.awaited.push_back(number);
  }
  if (death.awaited.empty()) return;
  event_queue_.plan(event_queue_.now() + (answered ? kAnsweredWithin : death.silent), *this, deaths_.size());
  deaths_.push_back(std::move(death));
}

/// If the network between the two was down meanwhile, the host's answer may be lost.
void DeathWatch::handle_event(std::uint64_t note) {
  const Death& death = deaths_[note];
  const Time last = death.at + death.silent;
  bool again = false;
  const Incarnations& incarnations = oracle_.incarnations();
  if (incarnations.alive(death.host) || incarnations.of(death.host) != death.incarnation) return;
  for (const MessageNumber number : death.awaited) {
    const Message& message = oracle_.message(number);
    const bool sender_lives =
        incarnations.alive(message.from) && incarnations.of(message.from) == message.from_incarnation;
    if (message.state != Message::State::under_way || !sender_lives) continue;
    if (hosts_[message.from]->away_since(death.at) || incarnations.cut_off(message.from, death.host))
      continue;
    if (event_queue_.now() < last && incarnations.cut_off(message.from, death.host, death.at)) {
      again = true;
      continue;
    }
    throw LivenessFailure("host " + std::to_string(message.from) +
                          " has not noticed that the process of host " + std::to_string(death.host) +
                          " was killed " +
                          std::to_string((event_queue_.now() - death.at).count() / 1'000'000) + " ms ago");
  }
  if (again) event_queue_.plan(last, *this, note);
}

}  // namespace cluster::sim
