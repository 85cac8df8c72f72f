#include "reliability/liveness.h"

#include <algorithm>

namespace cluster::reliability {

void Liveness::begin_listening(Time now) {
  silence_ = Duration{};
  listened_at_ = now;
}

void Liveness::listen(Time now) {
  if (now <= listened_at_) return;
  silence_ += std::min({now - listened_at_, kSilenceStepMax, peer_timeout_ / 2});
  listened_at_ = now;
}

void Liveness::heard(Time now, bool by_ethertype) {
  heard_at_ = now;
  if (by_ethertype) return;
  begin_listening(now);
  troubled_ = false;
}

void Liveness::expect(Time now, bool owed) {
  if (owed && !expecting_) begin_listening(now);
  if (!owed) troubled_ = false;
  expecting_ = owed;
}

bool Liveness::complaint(Time now, Status status) {
  // A peer that owes nothing may be gone without harm; whoever wants something of it will see.
  if (!expecting_) return false;
  if (!troubled_ || now - last_complaint_ > kErrorGapMax) {
    troubled_ = true;
    trouble_since_ = now;
  }
  last_complaint_ = now;
  const bool refused = status == Status::refused;
  if (now - trouble_since_ >= (refused ? kRefusedTolerated : kUnreachableTolerated)) {
    condemned_ = refused ? Status::refused : Status::unreachable;
  }
  return condemned_ == Status::ok;
}

bool Liveness::wants_probe(Time now) {
  listen(now);
  if (!expecting_ || silence_ < kSilenceBeforeProbe || now < probe_at_) return false;
  probe_at_ = now + kProbeEvery;
  return true;
}

Status Liveness::verdict(Time now) {
  if (condemned_ != Status::ok) return condemned_;
  listen(now);
  if (expecting_ && silence_ >= peer_timeout_) return Status::unreachable;
  return Status::ok;
}

Time Liveness::deadline() const {
  if (!expecting_) return kNever;
  const Time probe = std::max(listened_at_ + std::max(kSilenceBeforeProbe - silence_, Duration{}), probe_at_);
  return std::min(probe, listened_at_ + (peer_timeout_ - silence_));
}

}  // namespace cluster::reliability
