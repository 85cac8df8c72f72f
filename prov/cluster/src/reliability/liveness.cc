#include "reliability/liveness.h"

#include <algorithm>

namespace cluster::reliability {
namespace {

constexpr const Verdict* verdict_on(Suspicion suspicion, PeerState state) {
  for (const Verdict& row : kVerdicts)
    if (row.suspicion == suspicion && (row.state == state || row.state == PeerState::any)) return &row;
  return nullptr;
}

constexpr const Refutation& refutation_by(Evidence evidence, PeerState state = PeerState::any) {
  const auto row = std::ranges::find_if(kRefutations, [&](const Refutation& each) {
    return each.evidence == evidence && (each.state == state || each.state == PeerState::any);
  });
  return *row;
}

/// The row for this kind of evidence. The compiler looks the row up, because evidence arrives with each frame
/// and must cost little.
template <Evidence evidence>
constexpr const Refutation& kBy = refutation_by(evidence);

}  // namespace

/// Returns how much of the time since `counted_until_` counts as silence (see the head of liveness.h).
Duration Liveness::elapsed_by(Time now) const {
  if (now <= counted_until_) return {};
  const Time due = std::max(deadline(), counted_until_);
  if (now - due <= kLateMax) return now - counted_until_;
  return (due - counted_until_) * kLateMax.count() / (now - due).count() + kLateMax;
}

Duration Liveness::idle_by(Time now) const {
  const Duration cut_off = outage_ != nullptr ? outage_->within(counted_until_, now) : Duration{};
  return idle_ + std::max(elapsed_by(now) - cut_off, Duration{});
}

void Liveness::count_idle(Time now) {
  const Duration elapsed = elapsed_by(now);
  const Duration idle = idle_by(now);
  const Time due = std::max(deadline(), counted_until_);
  if (now - due > kLateMax) {  // `due` may be kNever
    const Duration absence = now - due - kLateMax;
    first_error_ += absence;
    last_error_ += absence;
    if (contested()) contested_since_ += absence;
  }
  if (error_ != Status::ok && outage_ != nullptr && outage_->within(counted_until_, now) > Duration{}) {
    const Verdict* const verdict = verdict_on(suspicion_of_errors(), state_at_error());
    if (verdict == nullptr || verdict->in_outage == InOutage::waits) error_ = Status::ok;
  }
  engine_idle_ += idle - idle_;
  reported_silence_ += elapsed;
  idle_ = idle;
  counted_until_ = std::max(counted_until_, now);
}

inline void Liveness::apply(const Refutation& refutation, Time now, Time asked) {
  const Duration since = now - asked;
  const auto ends = [&](unsigned matter) { return (refutation.ends & matter) != 0; };
  if (engine_idle_ >= refutation.engine_silence_max) return;
  if (ends(kSilence)) idle_ = std::min(idle_, since);
  if (ends(kEngineSilence)) engine_idle_ = std::min(engine_idle_, since);
  if (ends(kReported)) {
    if (since <= reported_silence_) kernel_vouches_ = false;
    reported_silence_ = std::min(reported_silence_, since);
  }
  const bool errors_end = ends(error_ == Status::translated ? kTranslation : kErrors);
  if (errors_end && (error_ == Status::ok || asked >= first_error_)) {
    error_ = Status::ok;
    forgotten_ = false;
    contested_since_ = kNever;
  }
  if (ends(kErrorsOnce) && error_ != Status::ok && !forgotten_) {
    error_ = Status::ok;
    forgotten_ = true;
  }
  if (since >= before_probe()) return;
  if (ends(kRefusal)) kernel_refuses_ = false;
  if (ends(kProbe)) probe_active_ = false;
}

void Liveness::on_sign_of_life(Time now, bool by_ethertype) {
  heard_at_ = now;
  if (by_ethertype) return apply(kBy<Evidence::ethertype_frame>, now, now);
  counted_until_ = now;
  apply(kBy<Evidence::frame>, now, now);
}

void Liveness::on_answer(Time now, Time asked, By by) {
  count_idle(now);
  heard_at_ = std::max(heard_at_, asked);
  apply(by == By::engine ? kBy<Evidence::engine_answer> : kBy<Evidence::responder_answer>, now, asked);
}

void Liveness::forget_path_errors() { apply(kBy<Evidence::opening>, counted_until_, counted_until_); }

void Liveness::set_expecting(Time now, bool owed) {
  if (owed == expecting_) return;
  expecting_ = owed;
  if (!owed) return apply(kBy<Evidence::owes_nothing>, now, now);
  counted_until_ = now;
  apply(kBy<Evidence::owes_again>, now, now);
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
  // A peer that owes nothing may be gone without harm. The next frame to that peer will show whether it is
  // gone.
  if (!expecting_) return false;
  count_idle(now);
  const bool port_closed = error == Status::refused;
  if (port_closed && !probe_active_) probe_at_ = std::max(probe_at_, now);
  note_error(now, error, known);
  if (port_closed) contest(now, kRetryAfter);
  return check(now) == Status::ok;
}

void Liveness::note_error(Time now, Status error, bool known) {
  if (now - last_error_ > kErrorGapMax) {
    error_ = Status::ok;
    forgotten_ = false;
  }
  if (error_ == Status::ok) {
    first_error_ = now;
    contested_since_ = kNever;  // so that contest() schedules another keep-alive
  }
  error_ = error;
  known_at_error_ = known;
  last_error_ = now;
}

/// A keep-alive is due even if the kernel of the silent peer says that the process exists. In this case the
/// keep-alive shows whether the process runs: even if the process only computes, its responder answers.
bool Liveness::keep_alive_due(Time now) const {
  if (!expecting_) return now >= refresh_at();
  const bool silent = kernel_vouches_ && reported_silence_ >= before_keep_alive();
  return (contested() || silent || idle_by(now) >= before_keep_alive()) && now >= keep_alive_at_;
}

void Liveness::on_keep_alive_sent(Time now, Duration least) {
  count_idle(now);
  keep_alive_sent_ = now;
  keep_alive_at_ = now + std::max(keep_alive_interval(now), std::min(least, peer_timeout_ / 4));
}

Duration Liveness::keep_alive_interval(Time now) const {
  const Duration doubt = met_ ? kRefusedTolerated : kStartingTolerated;
  if (contested() && now - contested_since_ <= doubt) return kContestedKeepAliveInterval;
  return met_ ? std::min(kKeepAliveInterval, peer_timeout_ / 5)
              : std::min(kUnmetKeepAliveInterval, peer_timeout_ / 16);
}

void Liveness::on_met(bool kernel_answers) {
  met_ = true;
  if (!kernel_answers) probes_ = Probes::none;
  if (!may_probe()) probe_active_ = false;
}

/// Returns true if this side should ask the peer's kernel. Once this side has asked, it asks again and again
/// until it hears the peer itself.
bool Liveness::wants_probe(Time now) const {
  if (!may_probe() || !expecting_) return false;
  return probe_active_ || refused() || idle_by(now) >= before_probe();
}

void Liveness::on_probe(Time now, link::ProcessProbe::Answer answer) {
  using Answer = link::ProcessProbe::Answer;
  count_idle(now);
  if (answer == Answer::ended && met_) {
    kernel_refuses_ = true;
    contest(now, kContestedKeepAliveInterval);
    const bool corroborated = probe_stood_ || refused();
    // Here the silence of the process counts even in an outage, because the refusal of its kernel has just
    // crossed the network.
    judge(Suspicion::kernel_refuses, corroborated ? PeerState::corroborated : PeerState::met,
          reported_silence_);
  }
  // A short peer timeout also shortens the interval. Several questions must fit into the timeout, because a
  // question or its answer may be lost.
  const Duration interval =
      probe_active_ ? std::min(kProbeInterval, peer_timeout_ / 16) : kProbeIntervalFirst;
  probe_at_ = now + (kernel_refuses_ ? kContestedKeepAliveInterval : interval);
  probe_active_ = true;
  kernel_vouches_ = answer == Answer::exists;
  if (!kernel_vouches_) return;
  probe_stood_ = true;
  vouched_at_ = now;
  apply(refutation_by(Evidence::kernel_vouches, met_ ? PeerState::met : PeerState::unmet), now, now);
}

Duration Liveness::limit(const Verdict& verdict) const {
  if (verdict.lasts == kPeerTimeout) return peer_timeout_;
  if (verdict.lasts != kStuckTimeout) return verdict.lasts;
  return stuck_timeout_ == Duration{0} ? Duration::max() : stuck_timeout_;
}

void Liveness::judge(Suspicion suspicion, PeerState state, Duration lasted) {
  const Verdict* verdict = verdict_on(suspicion, state);
  if (verdict_ != Status::ok || verdict == nullptr || lasted < limit(*verdict)) return;
  const bool waits = verdict->in_outage == InOutage::waits && outage_ != nullptr && outage_->present();
  if (!waits) verdict_ = verdict->status;
}

Suspicion Liveness::suspicion_of_errors() const {
  if (error_ == Status::prohibited) return Suspicion::prohibited;
  if (error_ == Status::translated) return Suspicion::translated;
  return refused() ? Suspicion::port_closed : Suspicion::host_unreachable;
}

Status Liveness::check(Time now) {
  if (verdict_ != Status::ok) return verdict_;
  count_idle(now);
  if (!expecting_) return Status::ok;
  if (errors_repeat() && now - last_error_ <= kErrorGapMax)
    judge(suspicion_of_errors(), state_at_error(), now - first_error_);
  judge(Suspicion::silent, PeerState::any, idle_);
  judge(Suspicion::stuck, PeerState::any, engine_idle_);
  return verdict_;
}

Time Liveness::deadline() const {
  if (news_of_end()) return counted_until_;
  if (!expecting_) return refresh_at();
  const bool outage = outage_ != nullptr && outage_->present();
  // In an outage the silence does not grow. A limit that is almost reached would be due soon again and again,
  // so the deadline is at least before_keep_alive() away.
  const auto at_idle = [&](Duration idle) {
    if (idle_ >= idle) return counted_until_;
    return counted_until_ + (outage ? std::max(idle - idle_, before_keep_alive()) : idle - idle_);
  };
  const Time ask = std::max(contested() ? contested_since_ : at_idle(before_keep_alive()), keep_alive_at_);
  Time next = ask;
  // In an outage, silence ends no session. The check with the next keep-alive comes soon enough after the
  // outage.
  if (!outage) next = std::min(next, at_idle(peer_timeout_));
  if (may_probe()) {
    const bool now = probe_active_ || refused();
    next = std::min(next, std::max(now ? Time{} : at_idle(before_probe()), probe_at_));
  }
  const Verdict* const row = errors_repeat() ? verdict_on(suspicion_of_errors(), state_at_error()) : nullptr;
  if (row != nullptr) {
    const Time verdict = first_error_ + limit(*row);
    if (verdict > counted_until_ && verdict <= last_error_ + kErrorGapMax) next = std::min(next, verdict);
  }
  return next;
}

Liveness::News Liveness::take_news() {
  if (!news_reported_ && kernel_vouches_ && reported_silence_ >= kWorthALine) {
    news_reported_ = true;
    return News::lasts;
  }
  if (!news_of_end()) return News::none;
  news_reported_ = false;
  return News::over;
}

}  // namespace cluster::reliability
