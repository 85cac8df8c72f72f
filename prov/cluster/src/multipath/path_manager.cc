#include "multipath/path_manager.h"

#include <algorithm>

#include "wire/opening.h"

namespace cluster::multipath {

using State = PathValidator::State;

static_assert(kPathsMax == wire::kRailsMax, "an opening lists as many addresses as there may be IP paths");

PathManager::PathManager(std::span<const Rail> rails, const link::Path& first, std::size_t window_max,
                         Log& log)
    : rails_(rails), paths_(rails, window_max, log), scheduler_(paths_), recovery_(paths_, scheduler_) {
  paths_.add(first, State::validated);
}

/// Tries each other rail once. After that every other try takes the rail of the peer's subnet: the others reach the
/// peer only if that rail is cut.
void PathManager::try_next_rail() {
  if (rails_.size() < 2) return;
  link::Path to = paths_[0].address;
  const std::uint8_t home = rail_towards(rails_, to.to);
  const bool each_tried = ++tries_ >= rails_.size();
  if (each_tried && to.link != home) {
    to.link = home;
  } else {
    do {
      tried_rail_ = static_cast<std::uint8_t>((tried_rail_ + 1u) % rails_.size());
    } while (tried_rail_ == home);
    to.link = tried_rail_;
  }
  to.mac_known = false;
  paths_.set_address(0, to);
}

link::Path PathManager::keep_alive_path(bool met) {
  link::Path path = scheduler_.next_validated();
  if (met || rails_.size() < 2) return path;
  asked_home_ = !asked_home_;
  const std::uint8_t home = rail_towards(rails_, path.to);
  if (!asked_home_ || path.link == home) return path;
  path.link = home;
  path.mac_known = false;
  return path;
}

void PathManager::join(std::span<const SocketAddress> peer) {
  if (joined_ || peer.empty()) return;
  joined_ = true;
  const auto on_link = [&](const SocketAddress& address) {
    return std::ranges::any_of(rails_, [&](const Rail& rail) { return in_subnet(rail, address); });
  };
  for (const SocketAddress& address : peer) {
    if (!is_local_address(rails_, address) && (everywhere_ || on_link(address))) peer_.push_back(address);
  }
  for (const link::Path& path : further_paths(rails_, peer_, paths_[0].address)) {
    paths_.add(path, State::unvalidated);
  }
}

void PathManager::learn(const link::Path& from, bool ack_owed, std::size_t frames) {
  if (ack_owed) reply_by_ethertype_ = from.ethertype;
  const link::Path& first = paths_[0].address;
  const bool as_known = first.doubts == 0 && (!from.mac_known || (first.mac_known && from.same_mac(first)));
  const bool several = paths_.ip_paths() > 1;
  // Nearly every frame there is:
  if (!several && from.link == first.link && as_known && from.to == first.to) return;
  if (const auto ip = paths_.find(from)) {
    paths_[*ip].address.doubts = 0;
    if (from.mac_known) paths_.set_address(*ip, from);
    if (ack_owed && several) answer_over(*ip, frames);
  } else if (!several && from.to == first.to) {
    paths_.set_address(0, from);  // it was reached by another rail than was tried last
  } else if (paths_.ip_paths() < kPathsMax && std::find(peer_.begin(), peer_.end(), from.to) != peer_.end()) {
    // The peer has paired otherwise. Its frames are answered where they come from: that may be the only path
    // that works.
    const std::size_t added = paths_.add(from, State::unvalidated);
    if (ack_owed) answer_over(added, frames);
  }
}

void PathManager::answer_over(std::size_t ip, std::size_t arrivals) {
  const std::size_t since = ip == reply_ ? since_switch_ + arrivals : arrivals - 1;
  since_switch_ = static_cast<unsigned>(std::min<std::size_t>(since, kSinglePathArrivals));
  reply_ = ip;
}

const link::Path& PathManager::reply_path() const {
  return paths_[reply_by_ethertype_ ? paths_.ethertype_or_ip(reply_) : reply_].address;
}

Duration PathManager::min_reply_delay() const {
  const RttEstimator& by_ethertype = paths_[paths_.ethertype_or_ip(reply_)].recovery.network_rtt();
  const bool used = reply_by_ethertype_ && by_ethertype.measured();
  return 2 * (used ? by_ethertype : paths_[reply_].recovery.network_rtt()).smoothed();
}

std::optional<PathManager::Challenge> PathManager::challenge_due(Time now) const {
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    const PathState& path = paths_[i];
    if (path.is_ethertype() || !path.validator.challenge_due(now)) continue;
    return Challenge{i, challenge_address(path)};
  }
  return std::nullopt;
}

/// The pairing was a guess, so every other challenge tries another address. But first a busy peer gets time to
/// answer: a host accepts frames to any of its addresses by any interface, so a path across two cables works as well,
/// and looks like one more.
link::Path PathManager::challenge_address(const PathState& path) const {
  const unsigned sent = path.validator.challenges();
  if (path.validator.proven() || sent < kPairedChallenges || sent % 2 == 0) return path.address;
  const SocketAddress& other = peer_[sent / 2 % peer_.size()];
  if (other.family() != path.address.to.family() || other == path.address.to) return path.address;
  return {other, {}, false, path.address.link};
}

std::optional<PathManager::Challenge> PathManager::ethertype_challenge_due(Time now) {
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    if (paths_[i].is_ethertype() || !paths_[i].validator.validated()) continue;
    if (paths_[i].companion == PathState::kNone) paths_.add_ethertype(i);
    const std::size_t companion = paths_[i].companion;
    if (paths_[companion].validator.challenge_due(now))
      return Challenge{companion, paths_[companion].address};
  }
  return std::nullopt;
}

void PathManager::on_challenge_sent(Time now, std::size_t path) {
  paths_.report(paths_[path], paths_[path].validator.on_challenge_sent(now));
}

/// The path that leads there; else one by that rail that has never worked, whose address was a guess.
std::optional<std::size_t> PathManager::path_of_response(const link::Path& from) const {
  if (const auto ip = paths_.find(from)) return ip;
  if (std::find(peer_.begin(), peer_.end(), from.to) == peer_.end()) return std::nullopt;
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    const PathState& path = paths_[i];
    if (!path.is_ethertype() && !path.validator.proven() && path.address.link == from.link) return i;
  }
  return std::nullopt;
}

void PathManager::on_response(Time now, Time asked, const link::Path& from, bool by_engine) {
  if (from.ethertype) {  // it shows that the EtherType path leads there and back, and nothing of the IP path
    const auto ip = paths_.find(from);
    if (!ip || !by_engine || paths_[*ip].companion == PathState::kNone) return;
    PathState& ethertype = paths_[paths_[*ip].companion];
    ethertype.recovery.copy_rtt(paths_[*ip].recovery);
    ethertype.validator.on_response(now, asked);
    return;
  }
  const auto number = path_of_response(from);
  if (!number) return;
  PathState& path = paths_[*number];
  if (!by_engine && !path.validator.proven()) return;
  if (from.mac_known || path.address.to != from.to) paths_.set_address(*number, from);
  const auto known = std::find(validated_addresses_.begin(), validated_addresses_.end(), from.to);
  if (by_engine && known == validated_addresses_.end()) validated_addresses_.push_back(from.to);
  paths_.report(path, path.validator.on_response(now, asked));
}

bool PathManager::on_path_error(Time now, const link::PathError& error) {
  if (paths_.ip_paths() == 1) return false;  // about whichever rail was tried
  const auto concerns = [&](const PathState& path) {
    return !path.is_ethertype() && path.address.to == error.peer && path.address.link == error.link;
  };
  const bool others = std::any_of(paths_.begin(), paths_.end(), [&](const auto& path) {
    return !path->is_ethertype() && path->validator.validated() && !concerns(*path);
  });
  if (!others) return false;
  bool reached = false;
  for (const auto& path : paths_) {
    if (!concerns(*path)) continue;
    reached |= path->validator.proven();
    path->validator.fail(now);
  }
  return !reached || error.status != Status::refused;
}

std::vector<PathStats> PathManager::stats() const {
  std::vector<PathStats> stats;
  stats.reserve(paths_.ip_paths());
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    const PathState& path = paths_[i];
    if (path.is_ethertype()) continue;
    const PathState* ethertype = path.companion == PathState::kNone ? nullptr : &paths_[path.companion];
    const bool by_ethertype = ethertype != nullptr && ethertype->recovery.sent_at() > path.recovery.sent_at();
    const PathRecovery& used = by_ethertype ? ethertype->recovery : path.recovery;
    const std::size_t beside = ethertype == nullptr ? 0 : ethertype->recovery.losses().in_flight();
    stats.push_back({.link = path.address.link,
                     .to = path.address.to,
                     .round_trip = used.network_rtt().smoothed(),
                     .reply_longest = used.reply_time().rto_unclamped(),
                     .window = path.recovery.congestion().window(),
                     .in_flight = path.recovery.losses().in_flight() + beside,
                     .up = path.validator.validated(),
                     .ethertype = ethertype != nullptr && ethertype->validator.validated()});
  }
  return stats;
}

std::size_t PathManager::footprint() const {
  return (peer_.capacity() + validated_addresses_.capacity()) * sizeof(SocketAddress) + paths_.footprint();
}

}  // namespace cluster::multipath
