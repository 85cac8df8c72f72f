// Whether the peer is still there. Asked only while it owes an acknowledgement.
//
// Timers: a peer that has been idle (no frame of it has come) for kIdleBeforeKeepAlive is sent a keep-alive,
// which its keep-alive responder answers, then another every kKeepAliveInterval (RFC 1122 4.2.3.6), or a fifth of
// the peer timeout if that is less. One that has not answered yet is
// asked as often as it is called, kUnmetKeepAliveInterval: where it is flooded, some of what asks for a session and some of what asks
// for a sign of life does not get through (link/thinning.h), and it is to be found alive for as long as that takes. Idle for
// kIdleBeforeProbe, or reported by ICMP, its kernel is asked as well (link/process_probe.h): what that says of
// the process counts at once, whether it runs or is stopped. Of a peer that has not answered yet it is not known
// whether its kernel does: that something has the port keeps it from being unreachable, for kUnmetMax, and
// proves nothing else. Idle for `peer_timeout`, with no word of its
// kernel either, the peer is unreachable. Only time during which this side ran counts: after a suspend of the
// host, or a stop of the process, the clock is far ahead and nothing was asked meanwhile; and where processes crowd,
// each of two peers waits for a processor as long as the other. So a check that comes later than it was due counts
// at most kLateMax of the delay, and of the time before so much less as the delay is longer than that. Nor does the rest of the delay
// count towards what ICMP errors say: while a process is stopped the kernel keeps them for it, and none of the peer's answers is read.
//
// ICMP errors end it sooner (outage.h). While something says that the port is closed, the peer is asked every
// kContestedKeepAliveInterval: one answer ends the doubt, and each question may be lost or take a way that is cut.
//
// That the peer's kernel refuses a connection says that the process has ended if one has stood before, or if an ICMP error that is
// proven says so as well. Else a firewall may have refused it, and the peer may be silent for a moment: that counts only if nothing is heard for kEndedTolerated, whatever else is
// said meanwhile.
//
// A process that lives but serves its peers no more is none of these cases: `stuck_timeout`, if it is not 0,
// is how long its engine may stay silent.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/status.h"
#include "base/units.h"
#include "link/process_probe.h"
#include "reliability/outage.h"
#include "reliability/silence.h"

namespace cluster::reliability {

class Liveness {
 public:
  /// Which kernels are asked: those of peers that have answered, or of all. Behind a key a peer that does not answer
  /// has most probably another one: it is not waited for because something has its port.
  enum class Probes : std::uint8_t { none, of_met, of_all };
  explicit Liveness(Duration peer_timeout, Duration stuck_timeout = Duration{0}, Probes probes = Probes::none)
      : peer_timeout_(peer_timeout),
        stuck_timeout_(stuck_timeout),
        probing_{.possible = probes != Probes::none, .unmet = probes == Probes::of_all} {}

  /// A frame of the peer to our session. What came over the EtherType path proves nothing about the IP path, and is not counted.
  void on_sign_of_life(Time now, bool by_ethertype);
  /// What answers a question.
  enum class By : std::uint8_t { engine, responder };
  /// What was asked then has been answered. So the peer lived at some moment since, and no more is counted: a host on the way may
  /// have kept answers, to feign life of a peer that has ended.
  void on_answer(Time now, Time asked, By by);
  /// Something has come that bears the peer's name (a frame with an opening, a ring): path errors before it, and those
  /// still unread, may be about an earlier incarnation. It is no sign of life, since it may be forged: so that happens once in an outage.
  void forget_path_errors() { outage_.forget(); }
  /// Whether the peer owes an acknowledgement from now on.
  void set_expecting(Time now, bool owed);
  /// An error that quotes a frame of ours. Returns true if one should be sent again kRetryAfter from now. `known`: the peer has
  /// answered in this session, so it is not just starting.
  bool on_path_error(Time now, Status error, bool known);
  /// One that any host can have made.
  void on_unproven_path_error(Time now);
  bool keep_alive_due(Time now) const;
  /// The next one is sent after `least`, or after the usual interval if that is longer, and soon enough for several.
  void on_keep_alive_sent(Time now, Duration least = {});
  /// The peer has answered, and says whether its kernel does so for it.
  void on_met(bool kernel_answers);
  /// True if the peer's kernel is to be asked now; on_probe() then takes the answer.
  bool probe_due(Time now) const { return wants_probe(now) && now >= probing_.at; }
  void on_probe(Time now, link::ProcessProbe::Answer answer);
  /// Its kernel's answers are of no interest (any more).
  bool probe_over() const { return !probing_.active; }
  /// `ok`, `unreachable` (idle for too long, or host unreachable), `refused` (port unreachable), `ended` (says its
  /// kernel) or `stuck`.
  Status check(Time now);
  Time deadline() const;
  /// What is known and reported of it; no verdict goes by that.
  Silence& silence() { return silence_; }
  const Silence& silence() const { return silence_; }

  static constexpr Duration kRetryAfter = 20ms;

 private:
  static constexpr Duration kIdleBeforeKeepAlive = 250ms;
  static constexpr Duration kKeepAliveInterval = 1s;
  static constexpr Duration kUnmetKeepAliveInterval = 250ms;
  static constexpr Duration kContestedKeepAliveInterval = 60ms;
  static constexpr Duration kIdleBeforeProbe = 400ms;
  /// The first answers take a round trip; later ones tell of a process that has ended meanwhile.
  static constexpr Duration kProbeIntervalFirst = 20ms;
  static constexpr Duration kProbeInterval = 200ms;
  static constexpr Duration kEndedTolerated = 500ms;
  static constexpr Duration kLateMax = 20ms;
  static constexpr Duration kUnmetMax = 1min;  ///< of a peer that was stopped before it was ever called

  /// Both leave time for an answer before the peer timeout is over.
  Duration before_keep_alive() const { return std::min(kIdleBeforeKeepAlive, peer_timeout_ / 4); }
  Duration before_probe() const { return std::min(kIdleBeforeProbe, peer_timeout_ / 2); }
  Duration idle_by(Time now) const;
  void count_idle(Time now);
  void restart_idle(Time now);
  Duration keep_alive_interval(Time now) const;
  /// Something says that the peer's port is closed, and may be forged: the peer itself is asked, so long after the last time.
  void contest(Time now, Duration ask_after);
  bool may_probe() const { return probing_.possible && (probing_.met || probing_.unmet); }
  bool wants_probe(Time now) const;

  const Duration peer_timeout_;
  const Duration stuck_timeout_;
  bool expecting_ = false;
  Silence silence_;
  Duration idle_{};         ///< counted while expecting: of the peer's process...
  Duration engine_idle_{};  ///< ...and of its engine
  Time counted_until_{};
  Time keep_alive_at_{};
  Time keep_alive_sent_{};
  struct Probing {
    bool possible = false;
    bool unmet = false;  ///< possible before the peer has answered
    bool met = false;
    bool active = false;   ///< asked since the peer was last heard
    bool stood = false;    ///< a connection
    bool refused = false;  ///< the last one, and the peer has not been heard since
    Time at{};             ///< when to ask next
  } probing_;
  Outage outage_;
  Status verdict_ = Status::ok;
};

}  // namespace cluster::reliability
