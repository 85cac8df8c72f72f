#include "multipath/path_manager.h"

#include <algorithm>
#include <array>
#include <utility>

namespace cluster::multipath {

static_assert(kPathsMax == wire::kRailsMax, "an opening lists as many addresses as there may be IP paths");

namespace {

/// Forgets the peer's hardware address. The address is from the last frame that arrived, and may be outdated
/// or forged. Until the next frame arrives, the kernel's neighbour table provides the address.
///
/// The frames of a peer in another network show the hardware address of a router. If routes are asymmetric,
/// or the router has failed, this router does not forward this side's frames to the peer. So after frames
/// were lost persistently kMacFailuresMax times, the kernel's routes choose the router. `routed`: true if the
/// peer is in another network.
void forget_mac(PathState& path, bool routed) {
  if (path.is_ethertype()) return;
  if (path.address.mac_known && routed && ++path.mac_failures >= PathState::kMacFailuresMax)
    path.address.by_routes = true;
  path.address.mac_known = false;
  if (path.address.doubts < std::numeric_limits<decltype(link::Path::doubts)>::max()) ++path.address.doubts;
}

}  // namespace

std::optional<std::size_t> earliest_delivery(std::span<const DeliveryEstimate> paths) {
  // The best path may have to wait. Then another path is used only if its delivery time is at most this many
  // times the best. Frames on a slower path would hold up later frames.
  constexpr int kWaitFactor = 2;
  std::optional<std::size_t> best;
  std::optional<std::size_t> allowed;
  std::optional<std::size_t> unknown;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const DeliveryEstimate& path = paths[i];
    if (!path.up) continue;
    if (!path.known) {
      if (path.allowance != 0 && path.in_flight == 0) return i;
      if (path.allowance != 0) unknown = i;
      continue;
    }
    const auto before = [&](const std::optional<std::size_t>& other) {
      return !other || path.delivery() < paths[*other].delivery();
    };
    if (before(best)) best = i;
    if (path.allowance != 0 && before(allowed)) allowed = i;
  }
  if (!best) return unknown;
  if (!allowed || paths[*allowed].delivery() <= kWaitFactor * paths[*best].delivery()) return allowed;
  return std::nullopt;
}

PathManager::PathManager(std::span<const Rail> rails, const link::Path& first, std::size_t window_max,
                         Log& log)
    : rails_(rails), log_(log), window_max_(window_max) {
  add(first, true);
}

/// Tries each other rail once. After that, every second try uses the rail on the peer's subnet, because the
/// other rails are needed only if that rail is cut.
void PathManager::try_next_rail() {
  const std::size_t rails = ip_rails();
  if (rails < 2) return;
  link::Path to = paths_[0]->address;
  const std::uint8_t home = rail_towards(rails_, to.to);
  const bool each_tried = ++tries_ >= rails;
  if (each_tried && to.link != home) {
    to.link = home;
  } else {
    do {
      tried_rail_ = static_cast<std::uint8_t>((tried_rail_ + 1u) % rails);
    } while (tried_rail_ == home);
    to.link = tried_rail_;
  }
  to.mac_known = false;
  set_address(0, to);
}

link::Path PathManager::keep_alive_path(bool met) {
  link::Path path = next_validated(false);
  if (met || ip_rails() < 2) return path;
  asked_home_ = !asked_home_;
  const std::uint8_t home = rail_towards(rails_, path.to);
  if (!asked_home_ || path.link == home) return path;
  path.link = home;
  path.mac_known = false;
  return path;
}

std::size_t PathManager::ip_rails() const {
  const auto verbs = [](const Rail& rail) { return rail.address.verbs(); };
  return static_cast<std::size_t>(std::ranges::find_if(rails_, verbs) - rails_.begin());
}

void PathManager::join(std::span<const SocketAddress> peer, std::span<const wire::VerbsAddress> queue_pairs) {
  if (joined_ || peer.empty()) return;
  joined_ = true;
  queue_pairs_.assign(queue_pairs.begin(), queue_pairs.end());
  for (const SocketAddress& address : peer) {
    if (may_use(address)) peer_.push_back(address);
  }
  for (const link::Path& path : further_paths(rails_, peer_, paths_[0]->address)) {
    add(path, false);
  }
}

void PathManager::learn(const link::Path& from, bool ack_owed, std::size_t frames) {
  if (ack_owed) reply_by_ethertype_ = from.ethertype;
  const link::Path& first = paths_[0]->address;
  const bool shows_mac = from.mac_known && !first.by_routes;
  const bool as_known = first.doubts == 0 && (!shows_mac || (first.mac_known && from.same_mac(first)));
  const bool several = ip_paths_ > 1;
  // For nearly every frame, the function returns here.
  if (!several && from.link == first.link && as_known && from.to == first.to) return;
  if (const auto ip = find(from)) {
    paths_[*ip]->address.doubts = 0;
    if (from.mac_known) set_address(*ip, from);
    if (ack_owed && several) answer_over(*ip, frames);
  } else if (!several && from.to == first.to) {
    set_address(0, from);  // another rail than the last one tried reaches the peer
  } else if (ip_paths_ < kPathsMax && std::find(peer_.begin(), peer_.end(), from.to) != peer_.end()) {
    // The peer has paired its rails with other addresses. The path of its frames may be the only path that
    // works.
    const std::size_t added = add(from, false);
    if (ack_owed) answer_over(added, frames);
  }
}

void PathManager::answer_over(std::size_t ip, std::size_t arrivals) {
  const std::size_t since = ip == reply_ ? since_switch_ + arrivals : arrivals - 1;
  since_switch_ = static_cast<unsigned>(std::min<std::size_t>(since, kSinglePathArrivals));
  reply_ = ip;
}

const link::Path& PathManager::reply_path() const {
  return paths_[reply_by_ethertype_ ? ethertype_or_ip(reply_) : reply_]->address;
}

Duration PathManager::min_reply_delay() const {
  const RttEstimator& by_ethertype = paths_[ethertype_or_ip(reply_)]->recovery.network_rtt();
  const bool used = reply_by_ethertype_ && by_ethertype.measured();
  return 2 * (used ? by_ethertype : paths_[reply_]->recovery.network_rtt()).smoothed();
}

std::optional<PathManager::Challenge> PathManager::challenge_due(Time now) const {
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    const PathState& path = *paths_[i];
    if (path.is_ethertype() || !path.validator.challenge_due(now)) continue;
    return Challenge{i, challenge_address(path)};
  }
  return std::nullopt;
}

/// Returns the path for the next challenge. The pairing was a guess, so every second challenge tries another
/// address. But the first few challenges go to the paired address only, so that a busy peer has time to
/// answer. The paired address is preferred, because a host accepts frames to any of its addresses on any
/// interface. So a wrong pair, of a rail and an address on different cables, may also work, and would look
/// like a further path.
link::Path PathManager::challenge_address(const PathState& path) const {
  const unsigned sent = path.validator.challenges();
  if (path.validator.proven() || sent < kPairedChallenges || sent % 2 == 0) return path.address;
  const SocketAddress& other = peer_[sent / 2 % peer_.size()];
  if (other.family() != path.address.to.family() || other == path.address.to) return path.address;
  return {other, {}, false, path.address.link};
}

std::optional<PathManager::Challenge> PathManager::ethertype_challenge_due(Time now) {
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    if (paths_[i]->is_ethertype() || paths_[i]->is_verbs() || !paths_[i]->validator.validated()) continue;
    if (paths_[i]->companion == PathState::kNone) add_ethertype(i);
    const std::size_t companion = paths_[i]->companion;
    if (paths_[companion]->validator.challenge_due(now))
      return Challenge{companion, paths_[companion]->address};
  }
  return std::nullopt;
}

void PathManager::on_challenge_sent(Time now, std::size_t path) {
  report(*paths_[path], paths_[path]->validator.on_challenge_sent(now));
}

/// Returns the path that leads to the sender. If there is none, returns another path over the same rail, but
/// only one that has never worked. The address of such a path was only a guess.
std::optional<std::size_t> PathManager::path_of_response(const link::Path& from) const {
  if (const auto ip = find(from)) return ip;
  if (std::find(peer_.begin(), peer_.end(), from.to) == peer_.end()) return std::nullopt;
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    const PathState& path = *paths_[i];
    if (!path.is_ethertype() && !path.validator.proven() && path.address.link == from.link) return i;
  }
  return std::nullopt;
}

void PathManager::on_response(Time now, Time asked, const link::Path& from, bool by_engine) {
  if (from.ethertype) {  // proves only that the EtherType path works in both directions
    const auto ip = find(from);
    if (!ip || !by_engine || paths_[*ip]->companion == PathState::kNone) return;
    PathState& ethertype = *paths_[paths_[*ip]->companion];
    ethertype.recovery.copy_rtt(paths_[*ip]->recovery);
    ethertype.validator.on_response(now, asked);
    return;
  }
  const auto number = path_of_response(from);
  if (!number) return;
  PathState& path = *paths_[*number];
  // The peer's keep-alive responder answers any address, so its answer does not show that the peer's engine
  // knows this side's address.
  if (!by_engine && (!path.validator.proven() || path.validator.announcing())) return;
  if (from.mac_known || path.address.to != from.to) set_address(*number, from);
  const auto known = std::find(validated_addresses_.begin(), validated_addresses_.end(), from.to);
  if (by_engine && known == validated_addresses_.end()) validated_addresses_.push_back(from.to);
  report(path, path.validator.on_response(now, asked));
}

bool PathManager::on_path_error(Time now, const link::PathError& error) {
  if (ip_paths_ == 1) return false;  // the error may concern any rail that was tried
  const auto concerns = [&](const PathState& path) {
    return !path.is_ethertype() && path.address.to == error.peer && path.address.link == error.link;
  };
  const bool others = std::any_of(paths_.begin(), paths_.end(), [&](const auto& path) {
    return !path->is_ethertype() && path->validator.validated() && !concerns(*path);
  });
  if (!others && !error.peer.verbs()) return false;  // only an IP error says something about the peer itself
  bool reached = false;
  for (const auto& path : paths_) {
    if (!concerns(*path)) continue;
    reached |= path->validator.proven();
    path->validator.fail(now);
  }
  return !reached || error.peer.verbs() || error.status != Status::refused;
}

/// Returns the size of the longest frame that a path between queue pairs carries, or kNone for an IP path.
std::size_t PathManager::limit_of(const link::Path& to) const {
  if (!to.to.verbs() || to.link >= rails_.size()) return PathState::kNone;
  const auto peer = std::ranges::find(queue_pairs_, to.to, &wire::VerbsAddress::address);
  const std::size_t ours = rails_[to.link].frame_max;
  return peer == queue_pairs_.end() ? ours : std::min(ours, peer->frame_max);
}

bool PathManager::may_use(const SocketAddress& address) const {
  const auto on_link = [&](const Rail& rail) { return in_subnet(rail, address); };
  return !is_local_address(rails_, address) &&
         ((everywhere_ && !address.verbs()) || std::ranges::any_of(rails_, on_link));
}

void PathManager::on_own_move(Time now, std::size_t link) {
  for (const auto& path : paths_) {
    if (path->address.link != link) continue;
    if (path->is_ethertype()) {
      path->validator.fail(now);
    } else {
      path->validator.announce(now);
    }
  }
}

bool PathManager::announcing() const {
  return std::ranges::any_of(paths_, [](const auto& path) { return path->validator.announcing(); });
}

void PathManager::on_peer_move(Time now, const SocketAddress& before, const link::Path& now_at) {
  std::ranges::replace(peer_, before, now_at.to);
  std::erase(validated_addresses_, before);
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    PathState& path = *paths_[i];
    if (path.is_ethertype() || path.address.to != before) continue;
    const std::uint8_t link = ip_paths_ == 1 ? now_at.link : path.address.link;
    set_address(i, {now_at.to, {}, false, link});
    if (link != now_at.link) path.validator.fail(now);
    if (path.companion != PathState::kNone) paths_[path.companion]->validator.fail(now);
  }
}

void PathManager::on_peer_queue_pair(Time now, const SocketAddress& before, const SocketAddress& after) {
  for (wire::VerbsAddress& each : queue_pairs_) {
    if (each.address == before) each.address = after;
  }
  std::ranges::replace(peer_, before, after);
  std::erase(validated_addresses_, before);
  for (const auto& path : paths_) {
    if (path->address.to != before) continue;
    path->address = {after, {}, false, path->address.link};
    path->validator.fail(now);
  }
}

std::size_t PathManager::add(const link::Path& to, bool validated) {
  paths_.push_back(std::make_unique<PathState>(link::ip_path(to), window_max_, validated));
  paths_.back()->frame_max = limit_of(to);
  paths_.back()->preferred = to.link < rails_.size() && rails_[to.link].preferred;
  ++ip_paths_;
  return paths_.size() - 1;
}

void PathManager::add_ethertype(std::size_t ip) {
  link::Path to = paths_[ip]->address;
  to.ethertype = true;
  paths_.push_back(std::make_unique<PathState>(to, window_max_, false));
  paths_.back()->companion = ip;
  paths_[ip]->companion = paths_.size() - 1;
}

std::optional<std::size_t> PathManager::find(const link::Path& from) const {
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    const PathState& path = *paths_[i];
    if (!path.is_ethertype() && path.address.link == from.link && path.address.to == from.to) return i;
  }
  return std::nullopt;
}

void PathManager::set_address(std::size_t ip, const link::Path& to) {
  PathState& path = *paths_[ip];
  const bool by_routes = path.address.by_routes && path.address.to == to.to;
  path.address = link::ip_path(to);
  path.address.by_routes = by_routes;
  path.address.mac_known = path.address.mac_known && !by_routes;
  if (path.companion == PathState::kNone) return;
  link::Path& ethertype = paths_[path.companion]->address;
  ethertype = path.address;
  ethertype.ethertype = true;
}

std::size_t PathManager::ethertype_or_ip(std::size_t ip) const {
  const std::size_t companion = paths_[ip]->companion;
  return companion != PathState::kNone && paths_[companion]->validator.validated() ? companion : ip;
}

/// Returns true if the peer's address on this path is in another network than the rail.
bool PathManager::is_routed(const link::Path& path) const {
  if (path.link >= rails_.size()) return false;
  const Rail& rail = rails_[path.link];
  return rail.prefix_bits != 0 && !in_subnet(rail, path.to);
}

Time PathManager::last_sent_at(std::size_t ip) const {
  const PathState& path = *paths_[ip];
  const Time by_ip = path.recovery.sent_at();
  return path.companion == PathState::kNone ? by_ip
                                            : std::max(by_ip, paths_[path.companion]->recovery.sent_at());
}

void PathManager::report(const PathState& path, PathValidator::Event event) const {
  if (event == PathValidator::Event::none || path.is_ethertype()) return;
  // The log line names both the rail and the address, because each of them may work when paired differently.
  const bool known = path.address.link < rails_.size();
  const Rail rail = known ? rails_[path.address.link] : Rail{};
  const std::string from = rail.address.ip_text() + " (" + rail.label + ")";
  const std::string to = path.address.to.text();
  if (event == PathValidator::Event::works) {
    log_.info("rails: the path from %s to %s works", from.c_str(), to.c_str());
  } else if (path.validator.proven() && path.is_verbs()) {
    // The peer may just be computing: no keep-alive responder answers for a queue pair.
    log_.info("rails: the path from %s to %s does not answer; frames use the other paths", from.c_str(),
              to.c_str());
  } else if (path.validator.proven()) {
    log_.warn(
        "rails: the path from %s to %s has failed; frames use the other paths until it works again (is a "
        "cable cut?)",
        from.c_str(), to.c_str());
  } else {
    log_.warn(
        "rails: %s does not reach %s, so this path is not used: the two are on different networks, or a "
        "firewall or a smaller MTU is between them (set FI_CLUSTER_RAILS to choose the interfaces)",
        from.c_str(), to.c_str());
  }
}

void PathManager::begin_turn() {
  for (const auto& path : paths_) path->link_full = false;
}

DeliveryEstimate PathManager::estimate(Time now, std::size_t ip) const {
  const PathState& path = *paths_[ip];
  const PathRecovery& recovery = path.recovery;
  DeliveryEstimate estimate;
  estimate.up = path.validator.validated() && !path.link_full;
  estimate.known = recovery.network_rtt().measured() && now < last_sent_at(ip) + PathRecovery::kRttStaleAfter;
  estimate.in_flight = recovery.losses().in_flight();
  estimate.allowance = recovery.allowance(now);
  estimate.way = recovery.congestion().shortest_round_trip() / 2;
  estimate.each =
      recovery.network_rtt().smoothed() / static_cast<std::int64_t>(recovery.congestion().window());
  return estimate;
}

PathManager::Grant PathManager::select(Time now) const {
  if (ip_paths_ == 1) return {0, paths_[0]->recovery.allowance(now)};
  std::array<DeliveryEstimate, 2 * kPathsMax> estimates;  // including the EtherType paths
  bool any_validated = false;
  const bool preferred = std::ranges::any_of(
      paths_, [](const auto& path) { return path->preferred && path->validator.validated(); });
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    if (paths_[i]->is_ethertype()) continue;  // in its estimate `up` stays false
    any_validated |= paths_[i]->validator.validated();
    if (preferred && !paths_[i]->preferred) continue;
    estimates[i] = estimate(now, i);
  }
  if (!any_validated) {  // the paths that have worked before are used in turn
    const std::size_t last = least_recent(PathState::kNone);
    return {last, paths_[last]->link_full ? 0 : std::min(estimates[last].allowance, kGrantMax)};
  }
  const auto best = earliest_delivery({estimates.data(), paths_.size()});
  if (!best) return {};
  return {*best, std::min(estimates[*best].allowance, kGrantMax)};
}

PathManager::Grant PathManager::select_other(Time now, std::size_t path) const {
  if (ip_paths_ == 1) return select(now);
  const std::size_t ip = paths_[path]->is_ethertype() ? paths_[path]->companion : path;
  std::size_t other = least_recent(ip);
  if (paths_[other]->link_full) other = ip;
  return {other, std::min(paths_[other]->recovery.allowance(now), kGrantMax)};
}

int PathManager::rank(std::size_t path) const {
  const PathValidator& validator = paths_[path]->validator;
  return validator.validated() ? 2 : validator.proven() ? 1 : 0;
}

/// Returns the best IP path other than `except`. Among equals, returns the path that was used longest ago.
/// Returns `except` if each other path is worse or has never worked.
std::size_t PathManager::least_recent(std::size_t except) const {
  std::size_t best = PathState::kNone;
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    if (i == except || paths_[i]->is_ethertype()) continue;
    const bool better = best == PathState::kNone || rank(i) > rank(best) ||
                        (rank(i) == rank(best) && last_sent_at(i) < last_sent_at(best));
    if (better) best = i;
  }
  if (except == PathState::kNone) return best;
  return best != PathState::kNone && rank(best) >= std::max(1, rank(except)) ? best : except;
}

std::size_t PathManager::path_for_lone_frame(std::size_t ip) {
  const std::size_t ethertype = ethertype_or_ip(ip);
  if (ethertype == ip || !paths_[ethertype]->recovery.has_window()) return ip;
  PathState& path = *paths_[ip];
  const TransmissionNumber arrived = path.recovery.losses().largest_acked();
  if (path.last_burst_end.after(arrived)) return ip;
  path.last_burst_end = arrived;  // keeps the numbers close to each other, because they wrap around
  return ethertype;
}

Time PathManager::resume_at(Time now) const {
  Time at = kNever;
  for (const auto& path : paths_) {
    const bool used = !path->is_ethertype() && (path->validator.validated() || ip_paths_ == 1);
    if (used) at = std::min(at, path->recovery.paced_until(now));
  }
  return at;
}

std::size_t PathManager::window() const {
  std::size_t sum = 0;
  for (const auto& path : paths_) {
    const PathValidator& validator = path->validator;
    const bool used = (validator.validated() || validator.announcing()) && !path->is_ethertype();
    sum += used ? path->recovery.congestion().window() : 0;
  }
  return sum;
}

const link::Path& PathManager::next_validated(bool verbs) {
  const auto may = [&](std::size_t i) {
    return !paths_[i]->is_ethertype() && (verbs || !paths_[i]->is_verbs());
  };
  int wanted = 0;
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    if (may(i)) wanted = std::max(wanted, rank(i));
  }
  do {
    next_validated_ = (next_validated_ + 1) % paths_.size();
  } while (!may(next_validated_) || rank(next_validated_) < wanted);
  return paths_[next_validated_]->address;
}

std::size_t PathManager::unlimited(std::size_t path) const {
  if (paths_[path]->frame_max == PathState::kNone) return path;
  std::size_t best = 0;
  for (std::size_t i = 1; i < paths_.size(); ++i) {
    const bool may = !paths_[i]->is_ethertype() && !paths_[i]->is_verbs();
    if (may && rank(i) > rank(best)) best = i;
  }
  return best;
}

void PathManager::on_retransmit(std::size_t path, TransmissionNumber last, TransmissionNumber next,
                                bool probe) {
  paths_[path]->recovery.on_retransmit(last);
  remember({next, static_cast<std::uint8_t>(path), probe});
}

void PathManager::remember(const Retransmission& one) {
  retransmissions_.push_back(one);
  if (retransmissions_.size() > kRetransmissionsKept) retransmissions_.erase(retransmissions_.begin());
}

void PathManager::credit_spurious(Time now, const AckInfo& ack) {
  std::size_t left = ack.spurious;
  for (std::size_t i = retransmissions_.size(); i-- != 0 && left != 0;) {
    Retransmission& one = retransmissions_[i];
    if (one.spurious || one.number.after(ack.largest_acked)) continue;
    one.spurious = true;
    --left;
    if (one.before != kNoPath) credit_spurious(now, one.before, 1, one.probe);
  }
  // The remaining spurious retransmissions are older than the recorded ones.
  if (left != 0 && paths_.size() == 1) credit_spurious(now, 0, left, false);
}

/// Tells the path that retransmissions were spurious. Because nothing was lost, the EtherType path with the
/// same address was wrongly suspected, so this function tells that path, too.
void PathManager::credit_spurious(Time now, std::size_t path, std::size_t frames, bool probes) {
  paths_[path]->recovery.on_spurious_retransmits(now, frames, probes);
  const std::size_t ethertype = paths_[path]->is_ethertype() ? path : paths_[path]->companion;
  if (ethertype != PathState::kNone) paths_[ethertype]->validator.on_spurious_loss();
}

void PathManager::tell_acked() {
  if (acked_.frames.count != 0) paths_[acked_.path]->recovery.on_frame_acked(acked_.frames);
  acked_.frames = {.count = 0};
}

void PathManager::on_ack(Time now, const AckInfo& ack) {
  tell_acked();
  const bool outdated = largest_acked_ && ack.largest_acked.before(*largest_acked_);
  if (!outdated) largest_acked_ = ack.largest_acked;
  if (ack.spurious != 0) credit_spurious(now, ack);
  const PathRecovery::AckContext context{paths_.size() == 1, ip_paths_ > 1, outdated};
  Time last_acked_sent_at{};
  for (const auto& path : paths_) {
    const PathRecovery::Arrival arrival = path->recovery.on_ack(now, ack, context);
    last_acked_sent_at = std::max(last_acked_sent_at, arrival.last_acked_sent_at);
    if (arrival.largest_acked_sent_at)
      report(*path, path->validator.on_acked(now, *arrival.largest_acked_sent_at));
  }
  if (context.sole) return;
  for (const auto& path : paths_) path->recovery.on_passed(now, last_acked_sent_at);
}

void PathManager::detect_losses(Time now, std::vector<Sequence>& lost, std::optional<Sequence> pmtu_probe) {
  for (const auto& path : paths_) {
    const std::size_t overdue = path->recovery.detect_losses(now, lost, pmtu_probe);
    if (overdue != 0 && path->is_ethertype()) path->validator.fail(now);
    if (fails_at(*path) <= now) fail(now, *path, lost);
  }
}

Time PathManager::fails_at(const PathState& path) const {
  if (paths_.size() == 1) return kNever;
  if (path.is_ethertype()) return path.recovery.fails_at(Duration::zero());
  return ip_paths_ > 1 ? path.recovery.fails_at(kPathFailureMin) : kNever;
}

void PathManager::fail(Time now, PathState& path, std::vector<Sequence>& lost) {
  path.recovery.on_persistent_timeout();
  path.recovery.take_back(lost);
  forget_mac(path, is_routed(path.address));
  path.validator.fail(now);
  if (path.companion != PathState::kNone && !path.is_ethertype()) {
    paths_[path.companion]->validator.fail(now);  // the cause has probably cut both paths
  }
}

Time PathManager::deadline() const {
  Time at = kNever;
  for (const auto& path : paths_) {
    at = std::min({at, path->recovery.losses().deadline(), fails_at(*path), path->validator.announce_at()});
  }
  return at;
}

void PathManager::on_unanswered(Time now, std::size_t number, Time sent_at) {
  PathState& path = *paths_[number];
  if (path.recovery.arrived_at() > sent_at) return;
  const bool elsewhere = path.is_ethertype() || (ip_paths_ > 1 && least_recent(number) != number);
  if (elsewhere) path.validator.on_unanswered(now);
}

void PathManager::on_persistent_timeout() {
  for (const auto& path : paths_) {
    path->recovery.on_persistent_timeout();
    forget_mac(*path, is_routed(path->address));
  }
}

void PathManager::suspect_ethertype_paths(Time now) {
  for (const auto& path : paths_) {
    if (path->is_ethertype()) path->validator.fail(now);
  }
}

const RttEstimator& PathManager::reply_time() const {
  const RttEstimator* slowest = nullptr;
  for (const auto& path : paths_) {
    if (path->recovery.losses().in_flight() == 0) continue;
    const RttEstimator& other = path->recovery.reply_time();
    if (!other.measured()) return other;  // no answer has been timed on that path yet
    if (slowest == nullptr || other.rto_unclamped() > slowest->rto_unclamped()) slowest = &other;
  }
  return slowest != nullptr ? *slowest : paths_[0]->recovery.reply_time();
}

bool PathManager::remembers(Sequence sequence, TransmissionNumber transmission) const {
  return std::any_of(paths_.begin(), paths_.end(), [&](const auto& path) {
    return path->recovery.losses().remembers(sequence, transmission);
  });
}

std::vector<PathStats> PathManager::stats() const {
  std::vector<PathStats> stats;
  stats.reserve(ip_paths_);
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    const PathState& path = *paths_[i];
    if (path.is_ethertype()) continue;
    const PathState* ethertype = path.companion == PathState::kNone ? nullptr : paths_[path.companion].get();
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
  std::size_t bytes = (peer_.capacity() + validated_addresses_.capacity()) * sizeof(SocketAddress) +
                      queue_pairs_.capacity() * sizeof(wire::VerbsAddress) +
                      paths_.capacity() * sizeof paths_.front();
  for (const auto& path : paths_) bytes += sizeof *path + path->recovery.losses().footprint();
  return bytes;
}

}  // namespace cluster::multipath
