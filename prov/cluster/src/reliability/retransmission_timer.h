// Decides when to retransmit a frame because no acknowledgement arrives (docs/protocol.md 4.4). Once a reply
// time was measured, the first retransmission is a tail loss probe (TLP, RFC 8985 section 7). Its
// acknowledgement tells the loss detector which other frames have arrived. Retransmission timeouts (RTO, RFC
// 6298 section 5) follow, each twice as long as the last, up to a limit.
//
// If the peer has already answered in this session, the first kBackoffMax timeouts are at most kBackedOffMax
// or one RTO apart, whichever is longer. When hundreds of flows fill one queue of a switch, one of them may
// lose a frame a dozen times in a row. This limit keeps that flow from falling behind by a second. Before the
// first answer, the timeouts are at most kCallMax apart. If turns are late (TurnDelay), each timeout is long
// enough for late turns of the peer, too.
//
// Every transmission and every newly acknowledged frame restarts the timer (RFC 9002 section 6.2.1). A newly
// acknowledged frame also ends the backoff.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"
#include "multipath/rtt_estimator.h"

namespace cluster::reliability {

/// Estimates how late the turns of an endpoint are (docs/protocol.md 4.4). If a timer fires long after its
/// deadline, the process has waited for a processor. If one node is crowded, the other nodes are usually
/// crowded as well. An answer then takes several such delays. A single delay may have another cause, for
/// example a stopped process. So one observation raises the estimate at most to twice its value plus kFirst.
class TurnDelay {
 public:
  /// Called at the time `now`, when a timer with the deadline `due` fires.
  void observe(Time now, Time due) {
    const Duration late = now - due < kSlice ? Duration{} : now - due;
    const Duration before = get(now);
    delay_ =
        late > before ? std::min({late, 2 * before + kFirst, kDelayMax}) : before - (before - late) / kFall;
    observed_at_ = now;
  }
  /// Returns the estimate. It falls to zero within kMemory after the last observation.
  Duration get(Time now) const {
    if (delay_ == Duration{}) return {};  // returns early, because get() is called for each frame
    const Duration left = kMemory - std::clamp(now - observed_at_, Duration{}, kMemory);
    return delay_ * (left / 1ms) / (kMemory / 1ms);
  }

  /// Makes the timers of the endpoint ignore late turns from this call on.
  void disregard() { disregarded_ = true; }
  bool disregarded() const { return disregarded_; }

  /// An answer counts as late only after this many delays. An answer takes at least two delays, because the
  /// question waits for a turn of the peer, and the answer for a turn of this side.
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
    rto,  ///< retransmission timeout: retransmit one frame; a sign of congestion if persistent()
  };

  /// `ack_delay`: the longest time by which the peer delays an acknowledgement. `turns`: estimates how late
  /// turns are; must outlive the timer. If it is null, the timer makes no allowance for late turns.
  explicit RetransmissionTimer(Duration ack_delay, const TurnDelay* turns = nullptr)
      : ack_delay_(ack_delay), turns_(turns) {}

  void set_ack_delay(Duration of_peer) { ack_delay_ = of_peer; }
  /// Called when a frame that the peer must acknowledge has left.
  void on_sent(Time now) { running_ = true, restart(now); }
  /// Called when the peer has acknowledged frames that it had not acknowledged before. `outstanding`: other
  /// frames are not acknowledged yet.
  void on_progress(Time now, bool outstanding) {
    running_ = outstanding;
    restart(now);
    tlp_sent_ = false;
    backoff_ = 0;
    unanswered_ = 0;
    expedited_at_ = kNever;
  }
  /// Called when the peer has probably dropped frames. Makes the timer fire at `when`, unless it fires
  /// earlier. Has no effect if nothing is outstanding.
  void expedite(Time when) {
    if (running_) expedited_at_ = std::min(expedited_at_, when);
  }
  /// Returns how long an answer can take because turns are late. The estimate dates from the last restart of
  /// the timer.
  Duration least() const { return turns_ != nullptr && turns_->disregarded() ? Duration{} : least_; }
  /// Returns when to call on_timer(), or kNever if nothing is outstanding.
  Time deadline(const multipath::RttEstimator& reply_time) const;
  Event on_timer(Time now, const multipath::RttEstimator& reply_time);
  /// Called when the peer has acknowledged a newer transmission. Such an acknowledgement need not acknowledge
  /// a new frame, because the peer may have no space for the frame.
  void on_answer() { unanswered_ = 0; }
  /// Returns true after at least two timeouts in a row without an answer. A delay on the peer's host may have
  /// caused the first timeout. (RFC 9002 7.6 also requires losses over the time of several timeouts.)
  bool persistent() const { return unanswered_ > 1; }

 private:
  static constexpr Duration kTlpMin = 20us;
  static constexpr unsigned kDoublingsMax = 13;  ///< 200 us, doubled this many times, is more than a second
  static constexpr unsigned kBackoffMax = 20;    ///< timeouts in a row that count for the backoff
  static constexpr Duration kBackedOffMax = 32ms;
  static constexpr Duration kCallMax = 250ms;

  Duration interval(const multipath::RttEstimator& reply_time) const;
  /// Returns when the timer fires if nothing expedites it.
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
  unsigned unanswered_ = 0;  ///< timeouts in a row without an answer
  Time since_{};
  Duration least_{};  ///< see least()
  Time expedited_at_ = kNever;
};

}  // namespace cluster::reliability
