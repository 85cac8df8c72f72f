#include "reliability/liveness.h"

#include <algorithm>

namespace cluster::reliability {

void Liveness::restart_idle(Time now) {
  idle_ = Duration{};
  counted_until_ = now;
}

Duration Liveness::idle_by(Time now) const {
  if (now <= counted_until_) return idle_;
  const Time due = std::max(deadline(), counted_until_);
  if (now - due <= kLateMax) return idle_ + (now - counted_until_);
  return idle_ + (due - counted_until_) * kLateMax.count() / (now - due).count() + kLateMax;
}

void Liveness::count_idle(Time now) {
  const Duration idle = idle_by(now);
  engine_idle_ += idle - idle_;
  idle_ = idle;
  counted_until_ = std::max(counted_until_, now);
}

void Liveness::on_sign_of_life(Time now, bool by_ethertype) {
  heard_at_ = now;
  if (by_ethertype) return;
  restart_idle(now);
  end_outage();
  engine_idle_ = Duration{};
  probing_.active = probing_.refused = false;
}

void Liveness::on_answer(Time now, Time asked, By by) {
  heard_at_ = std::max(heard_at_, asked);
  count_idle(now);
  const Duration since = now - asked;
  idle_ = std::min(idle_, since);
  if (outage_.error == Status::ok || asked >= outage_.since) end_outage();
  if (since < before_probe()) probing_.refused = false;
  if (by == By::responder) return;
  engine_idle_ = std::min(engine_idle_, since);
  if (since < before_probe()) probing_.active = false;
}

void Liveness::set_expecting(Time now, bool owed) {
  if (owed && !expecting_) {
    restart_idle(now);
    engine_idle_ = Duration{};
  }
  if (!owed) {
    end_outage();
    probing_.active = probing_.refused = false;
  }
  expecting_ = owed;
}

void Liveness::end_outage() {
  outage_.error = Status::ok;
  outage_.forgotten = false;
  contested_since_ = kNever;
}

void Liveness::forget_path_errors() {
  if (outage_.error == Status::ok || outage_.forgotten) return;
  outage_.error = Status::ok;
  outage_.forgotten = true;
}

void Liveness::contest(Time now, Duration ask_after) {
  if (contested()) return;
  contested_since_ = now;
  keep_alive_at_ = std::min(keep_alive_at_, std::max(now, keep_alive_sent_ + ask_after));
}

void Liveness::on_unproven_path_error(Time now) {
  if (!expecting_) return;
  count_idle(now);
  contest(now, kContestedKeepAliveInterval);
}

bool Liveness::on_path_error(Time now, Status error, bool known) {
  // A peer that owes nothing may be gone without harm: the next frame to it will tell.
  if (!expecting_) return false;
  count_idle(now);
  const bool refused = error == Status::refused;
  if (refused && !probing_.active) probing_.at = std::max(probing_.at, now);
  if (now - outage_.last > kErrorGapMax) outage_.error = Status::ok, outage_.forgotten = false;
  if (outage_.error == Status::ok) {
    outage_.since = now;
    contested_since_ = kNever;
  }
  if (refused) contest(now, kRetryAfter);
  outage_.error = error;
  outage_.last = now;
  outage_.tolerated = !refused ? kUnreachableTolerated : known ? kRefusedTolerated : kStartingTolerated;
  return check(now) == Status::ok;
}

bool Liveness::keep_alive_due(Time now) const {
  return expecting_ && (contested() || idle_by(now) >= before_keep_alive()) && now >= keep_alive_at_;
}

void Liveness::on_keep_alive_sent(Time now, Duration least) {
  count_idle(now);
  keep_alive_sent_ = now;
  keep_alive_at_ = now + std::max(keep_alive_interval(now), std::min(least, peer_timeout_ / 4));
}

Duration Liveness::keep_alive_interval(Time now) const {
  if (contested() && now - contested_since_ <= refused_tolerated()) return kContestedKeepAliveInterval;
  return probing_.met ? std::min(kKeepAliveInterval, peer_timeout_ / 5) : std::min(kUnmetKeepAliveInterval, peer_timeout_ / 16);
}

void Liveness::on_met(bool kernel_answers) {
  probing_.possible = probing_.possible && kernel_answers;
  probing_.met = true;
  if (!probing_.possible) probing_.active = false;
}

/// A peer whose kernel has answered is asked on until the peer itself is heard.
bool Liveness::wants_probe(Time now) const {
  if (!may_probe() || !expecting_) return false;
  return probing_.active || outage_.error == Status::refused || idle_by(now) >= before_probe();
}

void Liveness::on_probe(Time now, link::ProcessProbe::Answer answer) {
  using Answer = link::ProcessProbe::Answer;
  count_idle(now);
  if (answer == Answer::ended && probing_.met) {
    probing_.refused = true;
    contest(now, kContestedKeepAliveInterval);
    if (probing_.stood || idle_ >= kEndedTolerated) verdict_ = Status::ended;
  }
  probing_.at = now + (probing_.refused ? kContestedKeepAliveInterval : probing_.active ? kProbeInterval : kProbeIntervalFirst);
  probing_.active = true;
  probing_.stood |= answer == Answer::exists;
  if (answer != Answer::exists || (!probing_.met && engine_idle_ >= kUnmetMax)) return;
  idle_ = Duration{};
  probing_.refused = false;
  if (probing_.met) end_outage();  // older than this, or forged
}

Status Liveness::check(Time now) {
  if (verdict_ != Status::ok) return verdict_;
  count_idle(now);
  if (!expecting_) return Status::ok;
  if (outage_.error != Status::ok && outage_.last > outage_.since &&
      now - outage_.since >= outage_.tolerated && now - outage_.last <= kErrorGapMax) {
    verdict_ = outage_.error;
  } else if (idle_ >= peer_timeout_) {
    return Status::unreachable;
  } else if (stuck_timeout_ != Duration{} && engine_idle_ >= stuck_timeout_) {
    return Status::stuck;
  }
  return verdict_;
}

Time Liveness::deadline() const {
  if (!expecting_) return kNever;
  const auto at_idle = [this](Duration idle) { return counted_until_ + std::max(idle - idle_, Duration{}); };
  Time next = std::min(std::max(contested() ? contested_since_ : at_idle(before_keep_alive()), keep_alive_at_), at_idle(peer_timeout_));
  if (may_probe()) {
    const bool now = probing_.active || outage_.error == Status::refused;
    next = std::min(next, std::max(now ? Time{} : at_idle(before_probe()), probing_.at));
  }
  if (outage_.error != Status::ok && outage_.last > outage_.since) {
    const Time verdict = outage_.since + outage_.tolerated;
    if (verdict <= outage_.last + kErrorGapMax && verdict > counted_until_) next = std::min(next, verdict);
  }
  return next;
}

}  // namespace cluster::reliability
