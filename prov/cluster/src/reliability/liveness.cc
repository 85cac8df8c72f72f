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
  const Time due = std::max(deadline(), counted_until_);
  if (now > due) outage_.disregard(std::max(now - due - kLateMax, Duration{}));
  engine_idle_ += idle - idle_;
  silence_.count(idle - idle_);
  idle_ = idle;
  counted_until_ = std::max(counted_until_, now);
}

void Liveness::on_sign_of_life(Time now, bool by_ethertype) {
  silence_.on_heard(now);
  if (by_ethertype) return;
  restart_idle(now);
  outage_.end();
  engine_idle_ = Duration{};
  probing_.active = probing_.refused = false;
}

void Liveness::on_answer(Time now, Time asked, By by) {
  count_idle(now);
  const Duration since = now - asked;
  silence_.on_answer(asked, since);
  idle_ = std::min(idle_, since);
  outage_.on_answer(asked);
  if (since < before_probe()) probing_.refused = false;
  if (by == By::responder) return;
  engine_idle_ = std::min(engine_idle_, since);
  if (since < before_probe()) probing_.active = false;
}

void Liveness::set_expecting(Time now, bool owed) {
  if (owed && !expecting_) {
    restart_idle(now);
    engine_idle_ = Duration{};
    silence_.begin();
  }
  if (!owed) {
    outage_.end();
    probing_.active = probing_.refused = false;
  }
  expecting_ = owed;
}

void Liveness::contest(Time now, Duration ask_after) {
  if (!outage_.contest(now)) return;
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
  outage_.note(now, error, known);
  if (refused) contest(now, kRetryAfter);
  return check(now) == Status::ok;
}

/// While its kernel vouches for it the peer is asked on: one that computes answers by its responder, and is not silent.
bool Liveness::keep_alive_due(Time now) const {
  const bool silent = silence_.vouched() && silence_.lasted() >= before_keep_alive();
  return expecting_ && (outage_.contested() || silent || idle_by(now) >= before_keep_alive()) &&
         now >= keep_alive_at_;
}

void Liveness::on_keep_alive_sent(Time now, Duration least) {
  count_idle(now);
  keep_alive_sent_ = now;
  keep_alive_at_ = now + std::max(keep_alive_interval(now), std::min(least, peer_timeout_ / 4));
}

Duration Liveness::keep_alive_interval(Time now) const {
  if (outage_.urgent(now, probing_.met)) return kContestedKeepAliveInterval;
  return probing_.met ? std::min(kKeepAliveInterval, peer_timeout_ / 5)
                      : std::min(kUnmetKeepAliveInterval, peer_timeout_ / 16);
}

void Liveness::on_met(bool kernel_answers) {
  probing_.possible = probing_.possible && kernel_answers;
  probing_.met = true;
  if (!probing_.possible) probing_.active = false;
}

/// A peer whose kernel has answered is asked on until the peer itself is heard.
bool Liveness::wants_probe(Time now) const {
  if (!may_probe() || !expecting_) return false;
  return probing_.active || outage_.refused() || idle_by(now) >= before_probe();
}

void Liveness::on_probe(Time now, link::ProcessProbe::Answer answer) {
  using Answer = link::ProcessProbe::Answer;
  count_idle(now);
  if (answer == Answer::ended && probing_.met) {
    probing_.refused = true;
    contest(now, kContestedKeepAliveInterval);
    if (probing_.stood || outage_.refused() || idle_ >= kEndedTolerated) verdict_ = Status::ended;
  }
  // Several times in a short peer timeout: a question, or its answer, may be lost.
  const Duration interval =
      probing_.active ? std::min(kProbeInterval, peer_timeout_ / 16) : kProbeIntervalFirst;
  probing_.at = now + (probing_.refused ? kContestedKeepAliveInterval : interval);
  probing_.active = true;
  probing_.stood |= answer == Answer::exists;
  silence_.on_kernel(answer == Answer::exists);
  if (answer != Answer::exists || (!probing_.met && engine_idle_ >= kUnmetMax)) return;
  idle_ = Duration{};
  probing_.refused = false;
  if (probing_.met) outage_.end();  // older than this, or forged
}

Status Liveness::check(Time now) {
  if (verdict_ != Status::ok) return verdict_;
  count_idle(now);
  if (!expecting_) return Status::ok;
  verdict_ = outage_.verdict(now);
  if (verdict_ != Status::ok) return verdict_;
  if (idle_ >= peer_timeout_) {
    return Status::unreachable;
  }
  return stuck_timeout_ != Duration{} && engine_idle_ >= stuck_timeout_ ? Status::stuck : Status::ok;
}

Time Liveness::deadline() const {
  if (silence_.over()) return counted_until_;
  if (!expecting_) return kNever;
  const auto at_idle = [this](Duration idle) { return counted_until_ + std::max(idle - idle_, Duration{}); };
  Time next =
      std::min(std::max(outage_.contested() ? outage_.contested_since() : at_idle(before_keep_alive()),
                        keep_alive_at_),
               at_idle(peer_timeout_));
  if (may_probe()) {
    const bool now = probing_.active || outage_.refused();
    next = std::min(next, std::max(now ? Time{} : at_idle(before_probe()), probing_.at));
  }
  const Time verdict = outage_.verdict_due();
  if (verdict > counted_until_) next = std::min(next, verdict);
  return next;
}

}  // namespace cluster::reliability
