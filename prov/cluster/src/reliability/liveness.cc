#include "reliability/liveness.h"

#include <algorithm>

namespace cluster::reliability {

void Liveness::restart_idle(Time now) {
  idle_ = Duration{};
  counted_until_ = now;
}

Duration Liveness::idle_by(Time now) const {
  if (now <= counted_until_) return idle_;
  return idle_ + std::min({now - counted_until_, kIdleStepMax, peer_timeout_ / 2});
}

void Liveness::count_idle(Time now) {
  idle_ = idle_by(now);
  counted_until_ = std::max(counted_until_, now);
}

void Liveness::on_sign_of_life(Time now, bool by_ethertype) {
  heard_at_ = now;
  if (by_ethertype) return;
  restart_idle(now);
  failing_ = false;
}

void Liveness::set_expecting(Time now, bool owed) {
  if (owed && !expecting_) restart_idle(now);
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

bool Liveness::keep_alive_due(Time now) const {
  return expecting_ && idle_by(now) >= kIdleBeforeKeepAlive && now >= keep_alive_at_;
}

void Liveness::on_keep_alive_sent(Time now) {
  count_idle(now);
  keep_alive_at_ = now + kKeepAliveInterval;
}

Status Liveness::check(Time now) {
  if (verdict_ != Status::ok) return verdict_;
  count_idle(now);
  if (expecting_ && idle_ >= peer_timeout_) return Status::unreachable;
  return Status::ok;
}

Time Liveness::deadline() const {
  if (!expecting_) return kNever;
  const Time keep_alive =
      std::max(counted_until_ + std::max(kIdleBeforeKeepAlive - idle_, Duration{}), keep_alive_at_);
  return std::min(keep_alive, counted_until_ + (peer_timeout_ - idle_));
}

}  // namespace cluster::reliability
