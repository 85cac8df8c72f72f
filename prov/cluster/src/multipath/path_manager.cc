// Which rails there are, what goes out on them, and what time brings. What the peer says: rail_set_words.cc.
#include "multipath/path_manager.h"

#include <algorithm>
#include <array>

#include "wire/opening.h"

namespace cluster::multipath {

using Event = PathValidator::Event;

static_assert(multipath::kPathsMax == wire::kRailsMax,
              "an opening has room for as many addresses as there are ways");

PathManager::PathManager(std::span<const multipath::Rail> own, const link::Path& first,
                         std::size_t window_max, Log& log)
    : own_(own), window_max_(window_max), log_(log) {
  rails_.push_back(std::make_unique<PathState>(first, window_max, true));
}

// --- which there are ---

/// Each other link once; then every other try takes that of the peer's network, since the others lead there
/// only if it is cut.
void PathManager::try_next_rail() {
  link::Path& path = rails_.front()->path;
  if (own_.size() < 2) return;
  const std::uint8_t home = multipath::rail_towards(own_, path.to);
  const bool each_tried = ++tries_ >= own_.size();
  if (each_tried && path.link != home) {
    path.link = home;
  } else {
    do {
      tried_ = static_cast<std::uint8_t>((tried_ + 1u) % own_.size());
    } while (tried_ == home);
    path.link = tried_;
  }
  path.mac_known = false;
}

void PathManager::join(std::span<const SocketAddress> peer) {
  if (joined_ || peer.empty()) return;
  joined_ = true;
  for (const SocketAddress& address : peer) {
    if (!multipath::is_local_address(own_, address)) peer_.push_back(address);
  }
  const link::Path& first = rails_.front()->path;
  for (const multipath::PathCandidate& way : multipath::further_paths(own_, peer_, {first.link, first.to})) {
    link::Path path{way.to, {}, false, way.link};
    rails_.push_back(std::make_unique<PathState>(path, window_max_, false));
  }
}

std::optional<std::size_t> PathManager::find(const link::Path& from) const {
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    if (rails_[i]->path.link == from.link && rails_[i]->path.to == from.to) return i;
  }
  return std::nullopt;
}

void PathManager::learn(const link::Path& from, bool owed) {
  if (owed) answers_by_shortcut_ = from.ethertype;
  const link::Path& first = rails_.front()->path;
  const bool as_known = !from.mac_known || (first.mac_known && from.same_mac(first));
  // Nearly every frame there is:
  if (rails_.size() == 1 && from.link == first.link && as_known && from.to == first.to) return;
  if (const auto number = find(from)) {
    if (from.mac_known) rails_[*number]->found(from);
    if (owed && rails_.size() > 1) answer_by(*number);
  } else if (rails_.size() == 1 && from.to == rails_.front()->path.to) {
    rails_.front()->found(from);  // it was reached by another interface than was tried last
  } else if (rails_.size() < multipath::kPathsMax &&
             std::find(peer_.begin(), peer_.end(), from.to) != peer_.end()) {
    // The peer has paired otherwise: its frames are answered where they come from, or, if that is the only
    // way that works, nowhere.
    rails_.push_back(std::make_unique<PathState>(from, window_max_, false));
    if (owed) answer_by(rails_.size() - 1);
  }
}

void PathManager::answer_by(std::size_t number) {
  since_switch_ = number == reply_ ? std::min(since_switch_ + 1, kSinglePathArrivals) : 0;
  reply_ = number;
}

// --- what goes out ---

void PathManager::turn_begins() {
  for (const auto& rail : rails_) rail->full = false;
}

PathManager::Turn PathManager::next(Time now, const reliability::SendWindow& frames) {
  if (rails_.size() == 1) return {0, rails_.front()->allowance(now, frames.in_flight())};
  std::array<DeliveryEstimate, multipath::kPathsMax> estimates;
  bool any_up = false;
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    estimates[i] = rails_[i]->estimate(now, frames.in_flight_on(i));
    any_up |= rails_[i]->validator.validated();
  }
  if (!any_up) {
    // Nobody knows anything: each that has ever worked gets its turn.
    const std::size_t last = least_recent(rails_.size());
    return {last, rails_[last]->full ? 0 : std::min(estimates[last].allowance, kGrantMax)};
  }
  const auto best = multipath::earliest_delivery({estimates.data(), rails_.size()});
  if (!best) return {};
  return {*best, std::min(estimates[*best].allowance, kGrantMax)};
}

PathManager::Turn PathManager::select_other(Time now, std::size_t rail,
                                            const reliability::SendWindow& frames) {
  if (rails_.size() == 1) return next(now, frames);
  const std::size_t other = least_recent(rail);
  return {other, std::min(rails_[other]->allowance(now, frames.in_flight_on(other)), kGrantMax)};
}

/// Of those that are up, or else have ever worked, the one that was used the longest ago; `except` itself if
/// only worse ones are left.
std::size_t PathManager::least_recent(std::size_t except) const {
  const auto rank = [](const PathState& rail) {
    return rail.validator.validated() ? 2 : rail.validator.proven() ? 1 : 0;
  };
  std::size_t best = except == 0 ? 1 : 0;
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    if (i == except) continue;
    const PathState& one = *rails_[i];
    const PathState& other = *rails_[best];
    const bool better = rank(one) > rank(other) || (rank(one) == rank(other) && one.sent_at < other.sent_at);
    if (better) best = i;
  }
  if (except >= rails_.size()) return best;
  return rank(*rails_[best]) >= std::max(1, rank(*rails_[except])) ? best : except;
}

void PathManager::sent(Time now, std::size_t number, Sequence transmission, Sequence sequence,
                       const reliability::SendWindow& frames) {
  PathState& rail = *rails_[number];
  if (frames.in_flight_on(number) == 1) {
    rail.heard_at = now;
    rail.passed_at = kNever;
  }
  rail.sent_at = now;
  rail.pacer.sent(now);
  rail.losses.sent(transmission, sequence, now);
}

Time PathManager::resume(Time now) const {
  Time at = kNever;
  for (const auto& rail : rails_) {
    if (rail->validator.validated() || rails_.size() == 1) at = std::min(at, rail->pacer.ready_after(now));
  }
  return at;
}

std::optional<std::size_t> PathManager::path_to_challenge(Time now) const {
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    if (rails_[i]->validator.challenge_due(now)) return i;
  }
  return std::nullopt;
}

link::Path PathManager::challenge_path(std::size_t number) const {
  const PathState& rail = *rails_[number];
  link::Path path = rail.path;
  const unsigned asks = rail.validator.challenges();
  if (rail.validator.proven() || asks < kPairedChallenges || asks % 2 == 0) return path;
  // The pairing was a guess: every other time another address is tried. But not before a busy peer had time
  // to answer: hosts receive by any interface what is sent to any address of theirs, so that a way across two
  // cables works as well, and looks like one more.
  const SocketAddress& other = peer_[asks / 2 % peer_.size()];
  if (other.family() != path.to.family() || other == path.to) return path;
  return {other, {}, false, path.link};
}

void PathManager::asked(Time now, std::size_t number) {
  PathState& rail = *rails_[number];
  tell(rail, rail.validator.on_challenge_sent(now));
}

std::optional<std::size_t> PathManager::ethertype_to_challenge(Time now) const {
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    if (rails_[i]->validator.validated() && rails_[i]->ethertype.challenge_due(now)) return i;
  }
  return std::nullopt;
}

void PathManager::suspect_ethertype_paths(Time now) {
  for (const auto& rail : rails_) rail->ethertype.fail(now);
}

const link::Path& PathManager::next_validated() {
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    turn_ = (turn_ + 1) % rails_.size();
    if (rails_[turn_]->validator.proven()) break;
  }
  return rails_[turn_]->path;
}

// --- what time brings ---

std::size_t PathManager::detect(Time now, reliability::SendWindow& frames) {
  std::size_t lost = 0;
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    PathState& rail = *rails_[i];
    const std::size_t overdue = rail.losses.detect(now, rail.reply_time, frames);
    rail.congestion.lost(overdue);
    if (overdue != 0) rail.ethertype.fail(now);
    lost += overdue;
    if (frames.in_flight_on(i) == 0) rail.passed_at = kNever;
    if (rails_.size() > 1 && rail.failed_at() <= now) lost += fail(now, rail, frames);
  }
  return lost;
}

std::size_t PathManager::fail(Time now, PathState& rail, reliability::SendWindow& frames) {
  rail.congestion.timed_out();
  rail.passed_at = kNever;
  rail.validator.fail(now);
  rail.ethertype.fail(now);
  return rail.losses.give_up(frames);
}

std::size_t PathManager::window() const {
  std::size_t sum = 0;
  for (const auto& rail : rails_) sum += rail->validator.validated() ? rail->congestion.window() : 0;
  return sum;
}

Time PathManager::deadline() const {
  Time at = kNever;
  for (const auto& rail : rails_) {
    at = std::min({at, rail->losses.deadline(), rails_.size() > 1 ? rail->failed_at() : kNever});
  }
  return at;
}

void PathManager::timed_out(const reliability::SendWindow& frames) {
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    if (frames.in_flight_on(i) != 0) rails_[i]->congestion.timed_out();
  }
}

void PathManager::strike(Time now, const reliability::Flight& flight) {
  PathState& rail = *rails_[flight.rail];
  if (rails_.size() == 1 || rail.heard_at > flight.sent_at) return;
  if (least_recent(flight.rail) != flight.rail)
    rail.validator.on_unanswered(now);  // else its repair goes there again
}

const RttEstimator& PathManager::reply_time(const reliability::SendWindow& frames) const {
  const RttEstimator* longest = &rails_.front()->reply_time;
  for (std::size_t i = 1; i < rails_.size(); ++i) {
    if (frames.in_flight_on(i) == 0) continue;
    const RttEstimator& other = rails_[i]->reply_time;
    if (!other.measured()) return other;  // nothing is known of how long silence lasts there
    const bool slower = !longest->measured() || other.rto_unclamped() > longest->rto_unclamped();
    if (slower) longest = &other;
  }
  return *longest;
}

bool PathManager::remember(Sequence transmission, Sequence sequence) const {
  for (const auto& rail : rails_) {
    if (rail->losses.remembers(transmission, sequence)) return true;
  }
  return false;
}

std::vector<PathStats> PathManager::state(const reliability::SendWindow& frames) const {
  std::vector<PathStats> states;
  states.reserve(rails_.size());
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    const PathState& rail = *rails_[i];
    states.push_back({.link = rail.path.link,
                      .to = rail.path.to,
                      .round_trip = rail.round_trip.smoothed(),
                      .reply_longest = rail.reply_time.rto_unclamped(),
                      .window = rail.congestion.window(),
                      .in_flight = frames.in_flight_on(i),
                      .up = rail.validator.validated(),
                      .shortcut = rail.ethertype.validated()});
  }
  return states;
}

std::size_t PathManager::footprint() const {
  std::size_t bytes = (peer_.capacity() + validated_addresses_.capacity()) * sizeof(SocketAddress);
  for (const auto& rail : rails_) bytes += sizeof *rail + rail->losses.footprint();
  return bytes;
}

void PathManager::tell(const PathState& rail, Event event) const {
  if (event == Event::none) return;
  const std::string& label = rail.path.link < own_.size() ? own_[rail.path.link].label : std::string();
  const std::string to = rail.path.to.text();
  if (event == Event::works) {
    log_.info("rail %s to %s works", label.c_str(), to.c_str());
  } else if (rail.validator.proven()) {
    log_.warn("rail %s to %s is silent; frames take the others until it answers again", label.c_str(),
              to.c_str());
  } else {
    log_.warn(
        "rail %s does not reach %s and is left out: cabled to another network, or a firewall or smaller MTU "
        "between; see FI_CLUSTER_RAILS",
        label.c_str(), to.c_str());
  }
}

}  // namespace cluster::multipath
