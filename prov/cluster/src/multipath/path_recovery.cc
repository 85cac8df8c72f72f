// What the peer says, and what that tells of each rail: round trips, losses, whether it works.
#include <algorithm>

#include "multipath/path_manager.h"

namespace cluster::multipath {

void PathManager::word_begins(const reliability::SendWindow& frames) {
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    rails_[i]->tally = {};
    rails_[i]->tally.in_flight = frames.in_flight_on(i);
  }
}

void PathManager::arrived(Sequence sequence, const reliability::Flight& flight) {
  PathState& rail = *rails_[flight.rail];
  ++rail.tally.arrived;
  rail.losses.arrived(sequence, flight, rail.reply_time);
  // Of a frame that was sent again nobody knows which sending this was.
  if (flight.sendings != 1) return;
  if (rail.tally.latest && !flight.transmission.after(*rail.tally.latest)) return;
  rail.tally.latest = flight.transmission;
  rail.tally.latest_sent_at = flight.sent_at;
}

void PathManager::word_ends(Time now, const Word& word) {
  const bool overtaken = any_word_ && word.newest.before(newest_word_);
  if (!overtaken) newest_word_ = word.newest;
  any_word_ = true;
  for (const auto& rail : rails_) take_word(now, word, *rail, overtaken);
  if (rails_.size() > 1) compare(now);
}

void PathManager::take_word(Time now, const Word& word, PathState& rail, bool overtaken) {
  const bool alone = rails_.size() == 1;
  const bool named = alone || rail.losses.knows(word.newest);
  std::optional<Sequence> newest = rail.tally.latest;
  if (alone || (named && (!newest || word.newest.after(*newest)))) newest = word.newest;
  std::optional<Time> sent_at;
  if (newest && (alone || !overtaken)) {
    sent_at = rail.losses.newest_arrived(*newest, word.known_end);
  } else if (!overtaken) {
    rail.losses.covered(word.known_end);
  }
  std::optional<Duration> reply;
  std::optional<Duration> round_trip;
  if (sent_at && named && *newest == word.newest) {
    reply = now - *sent_at;
    if (word.delay) round_trip = word.arrived - *sent_at - *word.delay;
    rail.measured_at = now;
  } else if (sent_at && now - rail.measured_at > 4 * rail.reply_time.smoothed()) {
    // Frames of a slow rail are never the newest: then what the peer took to say so is in the sample. It says
    // little of the network unless that was not long.
    const bool prompt = word.delay && *word.delay < CongestionController::kTargetDelay;
    reply = now - *sent_at;
    if (prompt || !rail.round_trip.measured()) round_trip = word.arrived - *sent_at;
  }
  if (round_trip && *round_trip <= Duration::zero()) round_trip.reset();  // somebody has set the time
  if (reply) sample(now, rail, *reply, round_trip);
  if (sent_at) {
    rail.heard_at = now;
    rail.passed_at = kNever;
    tell(rail, rail.validator.on_acked(now, *sent_at));
    rail.tally.latest_sent_at = std::max(rail.tally.latest_sent_at, *sent_at);
  }
  if (word.spurious != 0) {
    rail.congestion.on_spurious_retransmits(word.spurious);
    rail.losses.on_spurious_retransmits(now, rail.reply_time);
    rail.ethertype.on_spurious_loss();
  }
  if (!alone && rail.tally.arrived == 0 && !sent_at) return;
  const Sequence upto = alone ? word.newest : rail.losses.newest();
  if (round_trip) round_trip = rail.round_trip.latest();
  rail.congestion.acknowledged(
      now, {rail.tally.arrived, rail.tally.in_flight, upto, word.next, round_trip, reply});
}

void PathManager::sample(Time now, PathState& rail, Duration reply, std::optional<Duration> round_trip) {
  // A rail that was slow, and is tried again after a while, is not to be judged by how it was.
  const bool stale = rails_.size() > 1 && now > rail.sampled_at + PathState::kRttStaleAfter;
  if (stale && reply < rail.reply_time.smoothed()) rail.reply_time = {};
  if (stale && round_trip && *round_trip < rail.round_trip.smoothed()) rail.round_trip = {};
  rail.sampled_at = now;
  rail.reply_time.sample(reply);
  if (!round_trip) return;
  rail.round_trip.sample(*round_trip);
  rail.shortest.sample(now, rail.round_trip.latest());
}

/// Something that was sent later on another rail has arrived: from now on silence speaks against a rail.
void PathManager::compare(Time now) {
  Time latest{};
  for (const auto& rail : rails_) latest = std::max(latest, rail->tally.latest_sent_at);
  for (const auto& rail : rails_) {
    if (rail->passed_at == kNever && latest > rail->heard_at) rail->passed_at = now;
  }
}

void PathManager::answered(Time now, const link::Path& from, bool by_engine) {
  auto number = find(from);
  if (from.ethertype) {  // it says that the shortcut leads there and back, and nothing else
    if (number && by_engine) rails_[*number]->ethertype.on_response(now);
    return;
  }
  for (std::size_t i = 0; !number && i < rails_.size(); ++i) {
    // An address that was tried instead of the one it was paired with.
    const bool new_way = !rails_[i]->validator.proven() && rails_[i]->path.link == from.link;
    if (new_way && std::find(peer_.begin(), peer_.end(), from.to) != peer_.end()) number = i;
  }
  if (!number) return;
  PathState& rail = *rails_[*number];
  if (!by_engine && !rail.validator.proven()) return;
  if (from.mac_known || rail.path.to != from.to) rail.found(from);
  if (by_engine && std::find(validated_addresses_.begin(), validated_addresses_.end(), from.to) ==
                       validated_addresses_.end()) {
    validated_addresses_.push_back(from.to);  // each is a rail's
  }
  tell(rail, rail.validator.on_response(now));
}

bool PathManager::complaint(Time now, const link::PathError& complaint) {
  if (rails_.size() == 1) return false;  // about whichever link was tried
  const auto meant = [&](const PathState& rail) {
    return rail.path.to == complaint.peer && rail.path.link == complaint.link;
  };
  bool others = false;
  for (const auto& rail : rails_) others |= rail->validator.validated() && !meant(*rail);
  if (!others) return false;
  for (const auto& rail : rails_) {
    if (meant(*rail)) rail->validator.fail(now);
  }
  return true;
}

}  // namespace cluster::multipath
