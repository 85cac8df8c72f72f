#include "multipath/multipath_recovery.h"

#include <algorithm>

namespace cluster::multipath {

void MultipathRecovery::on_ack(Time now, const AckInfo& ack) {
  const bool outdated = any_ack_ && ack.newest.before(newest_ack_);
  if (!outdated) newest_ack_ = ack.newest;
  any_ack_ = true;
  const PathRecovery::AckContext context{paths_.size() == 1, paths_.ip_paths() > 1, outdated};
  Time latest{};
  for (const auto& path : paths_) {
    const PathRecovery::Arrival arrival = path->recovery.on_ack(now, ack, context);
    latest = std::max(latest, arrival.latest);
    if (arrival.news) log_.report(*path, path->validator.on_acked(now, *arrival.news));
    if (ack.spurious != 0 && path->is_ethertype()) path->validator.on_spurious_loss();
  }
  if (context.sole) return;
  for (const auto& path : paths_) path->recovery.on_passed(now, latest);
}

void MultipathRecovery::detect_losses(Time now, std::vector<Sequence>& lost) {
  for (const auto& path : paths_) {
    const std::size_t overdue = path->recovery.detect_losses(now, lost);
    if (overdue != 0 && path->is_ethertype()) path->validator.fail(now);
    if (fails_at(*path) <= now) fail(now, *path, lost);
  }
}

Time MultipathRecovery::fails_at(const PathState& path) const {
  if (paths_.size() == 1) return kNever;
  if (path.is_ethertype()) return path.recovery.silent_until(Duration::zero());
  return paths_.ip_paths() > 1 ? path.recovery.silent_until(kPathSilenceMin) : kNever;
}

void MultipathRecovery::fail(Time now, PathState& path, std::vector<Sequence>& lost) {
  path.recovery.on_path_failed(lost);
  path.validator.fail(now);
  if (path.companion != PathState::kNone && !path.is_ethertype()) {
    paths_[path.companion].validator.fail(now);  // whatever cut the IP path is likely to have cut both
  }
}

Time MultipathRecovery::deadline() const {
  Time at = kNever;
  for (const auto& path : paths_) at = std::min({at, path->recovery.deadline(), fails_at(*path)});
  return at;
}

void MultipathRecovery::on_unanswered(Time now, std::size_t number, Time sent_at) {
  PathState& path = paths_[number];
  if (path.recovery.heard_at() > sent_at) return;
  const bool elsewhere = path.is_ethertype() || (paths_.ip_paths() > 1 && scheduler_.has_other(number));
  if (elsewhere) path.validator.on_unanswered(now);
}

void MultipathRecovery::on_persistent_timeout() {
  for (const auto& path : paths_) path->recovery.on_persistent_timeout();
}

void MultipathRecovery::suspect_ethertype_paths(Time now) {
  for (const auto& path : paths_) {
    if (path->is_ethertype()) path->validator.fail(now);
  }
}

const RttEstimator& MultipathRecovery::reply_rtt() const {
  const RttEstimator* slowest = nullptr;
  for (const auto& path : paths_) {
    if (path->recovery.in_flight() == 0) continue;
    const RttEstimator& other = path->recovery.reply_rtt();
    if (!other.measured()) return other;  // nothing is known of how long silence lasts there
    if (slowest == nullptr || other.rto_unclamped() > slowest->rto_unclamped()) slowest = &other;
  }
  return slowest != nullptr ? *slowest : paths_[0].recovery.reply_rtt();
}

bool MultipathRecovery::remembers(Sequence transmission, Sequence sequence) const {
  return std::any_of(paths_.begin(), paths_.end(), [&](const auto& path) {
    return path->recovery.losses().remembers(transmission, sequence);
  });
}

}  // namespace cluster::multipath
