// Whether the peer is still there. Asked only while it owes an acknowledgement.
//
// Timers: a peer that has been idle (no frame of it has come) for kIdleBeforeKeepAlive is sent a keep-alive,
// which its keep-alive responder answers, then another every kKeepAliveInterval (RFC 1122 4.2.3.6); idle for
// `peer_timeout` it is unreachable. Only time during which this side ran counts: after a suspend of the host,
// or a stop of the process, the clock is far ahead and no keep-alive was sent meanwhile, so one step counts at
// most kIdleStepMax. ICMP errors (port or host unreachable) end it sooner, but not at once: a peer may be
// starting, or be on its way back. RFC 1122 4.2.3.9 says that of host unreachable (a soft error); port unreachable, a
// hard error there, would end the session at once.
#pragma once

#include "base/status.h"
#include "base/units.h"

namespace cluster::reliability {

class Liveness {
 public:
  explicit Liveness(Duration peer_timeout) : peer_timeout_(peer_timeout) {}

  /// A frame of the peer to our session, or of its keep-alive responder. What came over the EtherType path proves nothing about
  /// the IP path, and is not counted.
  void on_sign_of_life(Time now, bool by_ethertype);
  /// A frame with an opening bears the peer's name: path errors before it, and those still unread, may be
  /// about an earlier incarnation. It is no sign of life, since it may be forged.
  void on_opening() { failing_ = false; }
  /// Whether the peer owes an acknowledgement from now on.
  void set_expecting(Time now, bool owed);
  /// Returns true if a frame should be sent again kRetryAfter from now.
  bool on_path_error(Time now, Status error);
  bool keep_alive_due(Time now) const;
  void on_keep_alive_sent(Time now);
  /// `ok`, `unreachable` (idle for too long, or host unreachable) or `refused` (port unreachable).
  Status check(Time now);
  Time deadline() const;
  /// The last sign of life over any path; Time{}: none yet.
  Time heard_at() const { return heard_at_; }

  static constexpr Duration kRetryAfter = 20ms;

 private:
  static constexpr Duration kIdleBeforeKeepAlive = 500ms;
  static constexpr Duration kKeepAliveInterval = 1s;
  /// Idle time between two checks that counts at most; a running side checks at each kKeepAliveInterval.
  static constexpr Duration kIdleStepMax = 2s;
  static constexpr Duration kRefusedTolerated = 1s;
  static constexpr Duration kUnreachableTolerated = 3s;
  /// Errors further apart do not belong to one outage (kernels send one a second).
  static constexpr Duration kErrorGapMax = 2500ms;

  Duration idle_by(Time now) const;
  void count_idle(Time now);
  void restart_idle(Time now);

  Duration peer_timeout_;
  bool expecting_ = false;
  Time heard_at_{};  ///< for statistics: the verdict goes by idle_
  Duration idle_{};  ///< counted while expecting
  Time counted_until_{};
  Time keep_alive_at_{};
  bool failing_ = false;  ///< path errors have come since the last sign of life
  Time failing_since_{};
  Time last_error_{};
  Status verdict_ = Status::ok;  ///< of path errors
};

}  // namespace cluster::reliability
