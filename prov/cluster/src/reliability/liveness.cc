#include "reliability/liveness.h"

#include <algorithm>

namespace cluster::reliability {

void Liveness::restart_silence(Time now) {
  silence_ = Duration{};
  counted_until_ = now;
}

void Liveness::count_silence(Time now) {
  if (now <= counted_until_) return;
  silence_ += std::min({now - counted_until_, kSilenceStepMax, peer_timeout_ / 2});
  counted_until_ = now;
}

void Liveness::on_sign_of_life(Time now, bool by_ethertype) {
  heard_at_ = now;
  if (by_ethertype) return;
  restart_silence(now);
  failing_ = false;
}

void Liveness::set_expecting(Time now, bool owed) {
  if (owed && !expecting_) restart_silence(now);
  if (!owed) failing_ = false;
  expecting_ = owed;
}

bool Liveness::on_path_error(Time now, Status error) {
  // A peer that owes nothing may be gone without harm: the next frame to it will tell.
  if (!expecting_) return false;
  if (!failing_ || now - last_error_ > kErrorGapMax) {
    failing_ = true;
    failing_since_ = now;
  }
  last_error_ = now;
  const bool refused = error == Status::refused;
  if (now - failing_since_ >= (refused ? kRefusedTolerated : kUnreachableTolerated)) {
    verdict_ = refused ? Status::refused : Status::unreachable;
  }
  return verdict_ == Status::ok;
}

bool Liveness::wants_probe(Time now) {
  count_silence(now);
  if (!expecting_ || silence_ < kSilenceBeforeProbe || now < probe_at_) return false;
  probe_at_ = now + kProbeEvery;
  return true;
}

Status Liveness::check(Time now) {
  if (verdict_ != Status::ok) return verdict_;
  count_silence(now);
  if (expecting_ && silence_ >= peer_timeout_) return Status::unreachable;
  return Status::ok;
}

Time Liveness::deadline() const {
  if (!expecting_) return kNever;
  const Time probe =
      std::max(counted_until_ + std::max(kSilenceBeforeProbe - silence_, Duration{}), probe_at_);
  return std::min(probe, counted_until_ + (peer_timeout_ - silence_));
}

}  // namespace cluster::reliability
