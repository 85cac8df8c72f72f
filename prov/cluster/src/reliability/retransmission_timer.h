// Decides when to retransmit a frame because no acknowledgement comes (docs/protocol.md 4.4). First comes a
// tail loss probe (TLP, RFC 8985 section 7): one retransmitted frame, whose acknowledgement tells the loss
// detector about all frames before it. Retransmission timeouts follow (RTO, RFC 6298 section 5), each twice
// as long as the last.
//
// If the peer has answered before, the first kBackoffMax timeouts are at most kBackedOffMax apart. Among
// hundreds of flows that fill one queue, a flow that is unlucky a dozen times in a row does not fall behind
// by a second. Where turns come late (TurnDelay), each timeout leaves the peer time for its turns.
//
// Every transmission and every progress restarts the timer (RFC 9002 section 6.2.1). Progress also resets the
// backoff.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"
#include "multipath/rtt_estimator.h"

namespace cluster::reliability {

/// Estimates how late the turns of an endpoint come (docs/protocol.md 4.4). A timer that fires long after it
/// was due shows that the process has waited for a processor. If one node is crowded, the others mostly are
/// too, so an answer takes several such delays. A single delay may come from a process that was stopped. So
/// each observation raises the estimate to at most twice its value plus kFirst.
class TurnDelay {
 public:
  /// A timer that was due at `due` fires at `now`.
  void observe(Time now, Time due) {
    const Duration late = now - due < kSlice ? Duration{} : now - due;
    const Duration before = get(now);
    delay_ =
        late > before ? std::min({late, 2 * before + kFirst, kDelayMax}) : before - (before - late) / kFall;
    observed_at_ = now;
  }
  Duration get(Time now) const {
    if (delay_ == Duration{}) return {};  // callers ask for each frame
    const Duration left = kMemory - std::clamp(now - observed_at_, Duration{}, kMemory);
    return delay_ * (left / 1ms) / (kMemory / 1ms);
  }

  /// Ignores late turns from now on.
  void disregard() { disregarded_ = true; }
  bool disregarded() const { return disregarded_; }

  /// An answer that takes less than this many delays is not missed: call and answer wait for a turn each.
  static constexpr int kTurnsPerAnswer = 3;

 private:
  static constexpr Duration kSlice = 12ms;
  static constexpr Duration kFirst = 50ms;
  static constexpr Duration kDelayMax = 4s;
  static constexpr int kFall = 8;
  static constexpr Duration kMemory = 16s;

  bool disregarded_ = false;
  Duration delay_{};
  Time observed_at_{};
};

class RetransmissionTimer {
 public:
  enum class Event : std::uint8_t {
    none,
    tlp,  ///< tail loss probe: retransmit one frame
    rto,  ///< retransmission timeout: retransmit one frame; if persistent(), it counts as congestion
  };

  /// `ack_delay`: that of the peer. `turns`: those of the endpoint, which outlive the timer; null: turns are
  /// never late.
  explicit RetransmissionTimer(Duration ack_delay, const TurnDelay* turns = nullptr)
      : ack_delay_(ack_delay), turns_(turns) {}

  void set_ack_delay(Duration of_peer) { ack_delay_ = of_peer; }
  /// A frame that must be acknowledged has left.
  void on_sent(Time now) { running_ = true, restart(now); }
  /// The peer has acknowledged frames for the first time. `outstanding`: it still has to acknowledge others.
  void on_progress(Time now, bool outstanding);
  /// The peer has probably dropped frames: retransmit one at `when` at the latest.
  void expedite(Time when) { expedited_at_ = std::min(expedited_at_, when); }
  /// How long an answer may take because of late turns, as of the last event.
  Duration least() const { return turns_ != nullptr && turns_->disregarded() ? Duration{} : least_; }
  /// Returns when to call on_timer(); kNever if nothing is outstanding.
  Time deadline(const multipath::RttEstimator& reply_time) const;
  Event on_timer(Time now, const multipath::RttEstimator& reply_time);
  /// The peer has named a newer transmission. It may be without progress: the peer has no space for a frame.
  void on_answer() { unanswered_ = 0; }
  /// True from the second timeout in a row without an answer. The first may come from a delay of the peer's
  /// host (RFC 9002 7.6 also asks for losses that last as long as several timeouts).
  bool persistent() const { return unanswered_ > 1; }

 private:
  static constexpr Duration kTlpMin = 20us;
  static constexpr unsigned kDoublingsMax = 13;  ///< 200 us doubled this often is more than a second
  static constexpr unsigned kBackoffMax = 20;    ///< timeouts without progress
  static constexpr Duration kBackedOffMax = 32ms;
  static constexpr Duration kCallMax = 250ms;

  Duration interval(const multipath::RttEstimator& reply_time) const;
  /// When the timer fires unless it is expedited.
  Time due(const multipath::RttEstimator& reply_time) const {
    return since_ + std::max(interval(reply_time), least());
  }
  void restart(Time now) {
    since_ = now;
    least_ = turns_ != nullptr ? TurnDelay::kTurnsPerAnswer * turns_->get(now) : Duration{};
  }
  bool tlp_next(const multipath::RttEstimator& reply_time) const {
    return !tlp_sent_ && reply_time.measured();
  }

  Duration ack_delay_;
  const TurnDelay* turns_;
  bool running_ = false;
  bool tlp_sent_ = false;
  unsigned backoff_ = 0;
  unsigned unanswered_ = 0;  ///< timeouts
  Time since_{};
  Duration least_{};  ///< least(), as of `since_`
  Time expedited_at_ = kNever;
};

}  // namespace cluster::reliability
