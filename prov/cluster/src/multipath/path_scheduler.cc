#include "multipath/path_scheduler.h"

#include <algorithm>
#include <array>

namespace cluster::multipath {

std::optional<std::size_t> earliest_delivery(std::span<const DeliveryEstimate> paths) {
  // If the best path may not send now, another path does, unless it delivers after more than this many times the
  // time.
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

void PathScheduler::begin_turn() {
  for (const auto& path : paths_) path->link_full = false;
}

DeliveryEstimate PathScheduler::estimate(Time now, std::size_t ip) const {
  const PathState& path = paths_[ip];
  const PathRecovery& recovery = path.recovery;
  DeliveryEstimate estimate;
  estimate.up = path.validator.validated() && !path.link_full;
  estimate.known =
      recovery.network_rtt().measured() && now < paths_.last_sent_at(ip) + PathRecovery::kRttStaleAfter;
  estimate.in_flight = recovery.losses().in_flight();
  estimate.allowance = recovery.allowance(now);
  estimate.way = recovery.min_rtt() / 2;
  estimate.each =
      recovery.network_rtt().smoothed() / static_cast<std::int64_t>(recovery.congestion().window());
  return estimate;
}

PathScheduler::Grant PathScheduler::select(Time now) const {
  if (paths_.ip_paths() == 1) return {0, paths_[0].recovery.allowance(now)};
  std::array<DeliveryEstimate, PathList::kMax> estimates;
  bool any_validated = false;
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    if (paths_[i].is_ethertype()) continue;  // its estimate says that it is not up
    estimates[i] = estimate(now, i);
    any_validated |= paths_[i].validator.validated();
  }
  if (!any_validated) {  // each that has ever worked in turn
    const std::size_t last = least_recent(PathState::kNone);
    return {last, paths_[last].link_full ? 0 : std::min(estimates[last].allowance, kGrantMax)};
  }
  const auto best = earliest_delivery({estimates.data(), paths_.size()});
  if (!best) return {};
  return {*best, std::min(estimates[*best].allowance, kGrantMax)};
}

PathScheduler::Grant PathScheduler::select_other(Time now, std::size_t path) const {
  if (paths_.ip_paths() == 1) return select(now);
  std::size_t other = least_recent(paths_.ip_path_of(path));
  if (paths_[other].link_full) other = paths_.ip_path_of(path);
  return {other, std::min(paths_[other].recovery.allowance(now), kGrantMax)};
}

int PathScheduler::rank(std::size_t path) const {
  const PathValidator& validator = paths_[path].validator;
  return validator.validated() ? 2 : validator.proven() ? 1 : 0;
}

/// Of the IP paths that are validated, or else have ever been, the one that was used the longest ago;
/// `except` itself if only worse ones are left.
std::size_t PathScheduler::least_recent(std::size_t except) const {
  std::size_t best = PathState::kNone;
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    if (i == except || paths_[i].is_ethertype()) continue;
    const bool better = best == PathState::kNone || rank(i) > rank(best) ||
                        (rank(i) == rank(best) && paths_.last_sent_at(i) < paths_.last_sent_at(best));
    if (better) best = i;
  }
  if (except == PathState::kNone) return best;
  return best != PathState::kNone && rank(best) >= std::max(1, rank(except)) ? best : except;
}

std::size_t PathScheduler::path_for_lone_frame(std::size_t ip) {
  const std::size_t ethertype = paths_.ethertype_or_ip(ip);
  if (ethertype == ip || !paths_[ethertype].recovery.has_window()) return ip;
  PathState& path = paths_[ip];
  const TransmissionNumber arrived = path.recovery.losses().largest_acked();
  if (path.last_burst_end.after(arrived)) return ip;
  path.last_burst_end = arrived;  // stays near, since numbers wrap around
  return ethertype;
}

Time PathScheduler::resume_at(Time now) const {
  Time at = kNever;
  for (const auto& path : paths_) {
    const bool used = !path->is_ethertype() && (path->validator.validated() || paths_.ip_paths() == 1);
    if (used) at = std::min(at, path->recovery.pacer().ready_after(now));
  }
  return at;
}

std::size_t PathScheduler::window() const {
  std::size_t sum = 0;
  for (const auto& path : paths_) {
    const bool used = path->validator.validated() && !path->is_ethertype();
    sum += used ? path->recovery.congestion().window() : 0;
  }
  return sum;
}

const link::Path& PathScheduler::next_validated() {
  const int wanted = rank(least_recent(PathState::kNone));
  do {
    next_ = (next_ + 1) % paths_.size();
  } while (paths_[next_].is_ethertype() || rank(next_) < wanted);
  return paths_[next_].address;
}

}  // namespace cluster::multipath
