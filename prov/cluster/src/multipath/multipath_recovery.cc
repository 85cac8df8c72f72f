#include "multipath/multipath_recovery.h"

#include <algorithm>
#include <limits>

namespace cluster::multipath {
namespace {

constexpr auto kDoubtsMax = std::numeric_limits<decltype(link::Path::doubts)>::max();

}  // namespace

void MultipathRecovery::on_retransmit(std::size_t path, TransmissionNumber last, TransmissionNumber next,
                                      bool probe) {
  paths_[path].recovery.on_retransmit(last);
  remember({next, static_cast<std::uint8_t>(path), probe});
}

void MultipathRecovery::remember(const Retransmission& one) {
  retransmissions_.push_back(one);
  if (retransmissions_.size() > kRetransmissionsKept) retransmissions_.erase(retransmissions_.begin());
}

void MultipathRecovery::credit_spurious(Time now, const AckInfo& ack) {
  std::size_t left = ack.spurious;
  for (std::size_t i = retransmissions_.size(); i-- != 0 && left != 0;) {
    Retransmission& one = retransmissions_[i];
    if (one.spurious || one.number.after(ack.largest_acked)) continue;
    one.spurious = true;
    --left;
    if (one.before != kNoPath) credit_spurious(now, one.before, 1, one.probe);
  }
  if (left != 0 && paths_.size() == 1) credit_spurious(now, 0, left, false);  // older than is remembered
}

/// Then the EtherType path beside it was suspected wrongly, too.
void MultipathRecovery::credit_spurious(Time now, std::size_t path, std::size_t frames, bool probes) {
  paths_[path].recovery.on_spurious_retransmits(now, frames, probes);
  const std::size_t ethertype = paths_[path].is_ethertype() ? path : paths_[path].companion;
  if (ethertype != PathState::kNone) paths_[ethertype].validator.on_spurious_loss();
}

void MultipathRecovery::on_ack(Time now, const AckInfo& ack) {
  const bool outdated = largest_acked_ && ack.largest_acked.before(*largest_acked_);
  if (!outdated) largest_acked_ = ack.largest_acked;
  if (ack.spurious != 0) credit_spurious(now, ack);
  const PathRecovery::AckContext context{paths_.size() == 1, paths_.ip_paths() > 1, outdated};
  Time last_acked_sent_at{};
  for (const auto& path : paths_) {
    const PathRecovery::Arrival arrival = path->recovery.on_ack(now, ack, context);
    last_acked_sent_at = std::max(last_acked_sent_at, arrival.last_acked_sent_at);
    if (arrival.largest_acked_sent_at)
      paths_.report(*path, path->validator.on_acked(now, *arrival.largest_acked_sent_at));
  }
  if (context.sole) return;
  for (const auto& path : paths_) path->recovery.on_passed(now, last_acked_sent_at);
}

void MultipathRecovery::detect_losses(Time now, std::vector<Sequence>& lost,
                                      std::optional<Sequence> pmtu_probe) {
  for (const auto& path : paths_) {
    const std::size_t overdue = path->recovery.detect_losses(now, lost, pmtu_probe);
    if (overdue != 0 && path->is_ethertype()) path->validator.fail(now);
    if (fails_at(*path) <= now) fail(now, *path, lost);
  }
}

Time MultipathRecovery::fails_at(const PathState& path) const {
  if (paths_.size() == 1) return kNever;
  if (path.is_ethertype()) return path.recovery.fails_at(Duration::zero());
  return paths_.ip_paths() > 1 ? path.recovery.fails_at(kPathFailureMin) : kNever;
}

void MultipathRecovery::fail(Time now, PathState& path, std::vector<Sequence>& lost) {
  path.recovery.on_persistent_timeout();
  path.recovery.take_back(lost);
  forget_mac(path);
  path.validator.fail(now);
  if (path.companion != PathState::kNone && !path.is_ethertype()) {
    paths_[path.companion].validator.fail(now);  // whatever cut the IP path is likely to have cut both
  }
}

Time MultipathRecovery::deadline() const {
  Time at = kNever;
  for (const auto& path : paths_) at = std::min({at, path->recovery.losses().deadline(), fails_at(*path)});
  return at;
}

void MultipathRecovery::on_unanswered(Time now, std::size_t number, Time sent_at) {
  PathState& path = paths_[number];
  if (path.recovery.arrived_at() > sent_at) return;
  const bool elsewhere = path.is_ethertype() || (paths_.ip_paths() > 1 && scheduler_.has_other(number));
  if (elsewhere) path.validator.on_unanswered(now);
}

void MultipathRecovery::on_persistent_timeout() {
  for (const auto& path : paths_) {
    path->recovery.on_persistent_timeout();
    forget_mac(*path);
  }
}

/// The hardware address is from the last frame that came. It may be outdated or forged, so the kernel's neighbour
/// table decides until the next frame comes.
void MultipathRecovery::forget_mac(PathState& path) {
  if (path.is_ethertype()) return;
  path.address.mac_known = false;
  if (path.address.doubts < kDoubtsMax) ++path.address.doubts;
}

void MultipathRecovery::suspect_ethertype_paths(Time now) {
  for (const auto& path : paths_) {
    if (path->is_ethertype()) path->validator.fail(now);
  }
}

const RttEstimator& MultipathRecovery::reply_time() const {
  const RttEstimator* slowest = nullptr;
  for (const auto& path : paths_) {
    if (path->recovery.losses().in_flight() == 0) continue;
    const RttEstimator& other = path->recovery.reply_time();
    if (!other.measured()) return other;  // how long an answer takes there is not known
    if (slowest == nullptr || other.rto_unclamped() > slowest->rto_unclamped()) slowest = &other;
  }
  return slowest != nullptr ? *slowest : paths_[0].recovery.reply_time();
}

bool MultipathRecovery::remembers(Sequence sequence, TransmissionNumber transmission) const {
  return std::any_of(paths_.begin(), paths_.end(), [&](const auto& path) {
    return path->recovery.losses().remembers(sequence, transmission);
  });
}

}  // namespace cluster::multipath
