// Decides whether a peer that owes an acknowledgement is still there, and when to ask it (docs/protocol.md
// 2.5). A peer that owes nothing is not watched. Two tables hold the decisions. `kVerdicts` says how long a
// suspicion must last, and how the session then ends. `kRefutations` says which suspicions each kind of
// evidence ends.
//
// A silent peer gets keep-alives. If it stays silent, or if ICMP says that its port is unreachable, this side
// asks the peer's kernel. The kernel knows whether the process exists, even if the process is stopped
// (link/process_probe.h).
//
// Only time during which this side ran counts. If a check comes late, at most kLateMax of the delay counts.
// Of the time before it a share counts, and the later the check is, the smaller is the share. So a host that
// was suspended concludes nothing from its own absence, and on crowded nodes a peer that waits for a
// processor has more time. The rest of the delay does not count for ICMP errors either: the kernel kept them
// meanwhile, and nobody read the peer's answers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/status.h"
#include "base/units.h"
#include "link/process_probe.h"

namespace cluster::reliability {

enum class Suspicion : std::uint8_t {
  silent,            ///< no sign of life, not even from the peer's kernel
  stuck,             ///< the peer's engine says nothing
  port_closed,       ///< ICMP port unreachable, which quotes a frame of ours
  host_unreachable,  ///< ICMP host or network unreachable, which quotes a frame of ours
  kernel_refuses,    ///< the peer's kernel refuses a connection, or resets one
};

enum class PeerState : std::uint8_t {
  any,
  unmet,         ///< the peer has not answered in this session
  met,           ///< the peer has answered
  corroborated,  ///< met; a connection to its kernel has stood, or ICMP also says that its port is closed
};

struct Verdict {
  Suspicion suspicion;
  PeerState state;
  Status status;
  Duration lasts;  ///< for port_closed and host_unreachable: from the first error until now
};

inline constexpr Duration kPeerTimeout{-1};   ///< the value of the option
inline constexpr Duration kStuckTimeout{-2};  ///< the value of the option; 0: forever
inline constexpr Duration kStartingTolerated = 950ms;
inline constexpr Duration kRefusedTolerated = 300ms;
inline constexpr Duration kUnreachableTolerated = 3s;
inline constexpr Duration kEndedTolerated = 500ms;

/// The first row that matches decides. Without a row there is no verdict.
inline constexpr Verdict kVerdicts[] = {
    {Suspicion::silent, PeerState::any, Status::unreachable, kPeerTimeout},
    {Suspicion::stuck, PeerState::any, Status::stuck, kStuckTimeout},
    // The peer may be starting.
    {Suspicion::port_closed, PeerState::unmet, Status::refused, kStartingTolerated},
    // An error may be forged. A live process answers a question within this time.
    {Suspicion::port_closed, PeerState::met, Status::ended, kRefusedTolerated},
    // A soft error (RFC 1122 4.2.3.9).
    {Suspicion::host_unreachable, PeerState::any, Status::unreachable, kUnreachableTolerated},
    // There is no row for an unmet peer: it may have no such port.
    {Suspicion::kernel_refuses, PeerState::corroborated, Status::ended, Duration{0}},
    // A firewall may refuse while the peer is silent for a moment. So the peer and its kernel must be silent
    // for this time.
    {Suspicion::kernel_refuses, PeerState::met, Status::ended, kEndedTolerated},
};

/// What this side knows about a peer, as far as evidence can end it.
enum Matter : std::uint8_t {
  kSilence = 1,        ///< silence of the process and its kernel
  kEngineSilence = 2,  ///< silence of the engine
  kReported = 4,       ///< silence of engine and responder, which the log reports
  kErrors = 8,         ///< ICMP errors, and the doubt whether the port is open
  kErrorsOnce = 16,    ///< the same, but once until the next sign of life, because an opening may be forged
  kRefusal = 32,       ///< the kernel has refused a connection
  kProbe = 64,         ///< this side is asking the kernel
};

enum class Evidence : std::uint8_t {
  frame,             ///< a frame in its place in our session
  ethertype_frame,   ///< the same over the EtherType path, which proves nothing about the IP path
  engine_answer,     ///< the answer to a path challenge
  responder_answer,  ///< the answer to a keep-alive
  kernel_vouches,    ///< a connection to the kernel stands
  opening,  ///< an opening or a ring in the peer's name: older errors may be about an earlier process
  owes_nothing,
  owes_again,
};

/// An answer counts from the moment of the question, because a host on the path may keep answers and feign
/// life. It ends only the silence since the question. It ends errors only if the first error is older than
/// the question, and a refusal or the probe only if the question is younger than before_probe().
struct Refutation {
  Evidence evidence;
  PeerState state;
  unsigned ends;  ///< a set of Matter
  /// Applies only while the engine has been silent for less than this.
  Duration engine_silence_max = Duration::max();
};

/// Another program may have the port of a peer that was never met. The peer counts as lost after this time.
inline constexpr Duration kUnmetMax = 1min;

inline constexpr Refutation kRefutations[] = {
    {Evidence::frame, PeerState::any, kSilence | kEngineSilence | kReported | kErrors | kRefusal | kProbe},
    {Evidence::ethertype_frame, PeerState::any, kReported},
    {Evidence::engine_answer, PeerState::any,
     kSilence | kEngineSilence | kReported | kErrors | kRefusal | kProbe},
    {Evidence::responder_answer, PeerState::any, kSilence | kReported | kErrors | kRefusal},
    {Evidence::kernel_vouches, PeerState::unmet, kSilence, kUnmetMax},
    {Evidence::kernel_vouches, PeerState::met, kSilence | kErrors | kRefusal},
    {Evidence::opening, PeerState::any, kErrorsOnce},
    {Evidence::owes_nothing, PeerState::any, kErrors | kRefusal | kProbe},
    {Evidence::owes_again, PeerState::any, kSilence | kEngineSilence | kReported},
};

class Liveness {
 public:
  /// Which kernels this side asks. With a key, an unmet silent peer most probably has another key, so its
  /// open port does not keep it.
  enum class Probes : std::uint8_t { none, of_met, of_all };
  explicit Liveness(Duration peer_timeout, Duration stuck_timeout = Duration{0}, Probes probes = Probes::none)
      : peer_timeout_(peer_timeout), stuck_timeout_(stuck_timeout), probes_(probes) {}

  /// A frame with a place in our session has come.
  void on_sign_of_life(Time now, bool by_ethertype);
  enum class By : std::uint8_t { engine, responder };
  void on_answer(Time now, Time asked, By by);
  /// An opening or a ring in the peer's name has come.
  void forget_path_errors();
  void set_expecting(Time now, bool owed);
  /// An error that quotes a frame of ours has come. `known`: the peer has answered in this session. Returns
  /// true if the caller should retransmit kRetryAfter from now.
  bool on_path_error(Time now, Status error, bool known);
  /// An error that any host may have forged has come.
  void on_unproven_path_error(Time now);
  bool keep_alive_due(Time now) const;
  /// Schedules the next keep-alive after `least`, or after the usual interval if that is longer. Several fit
  /// into the peer timeout.
  void on_keep_alive_sent(Time now, Duration least = {});
  /// The peer has answered, and says whether its kernel answers questions about the process.
  void on_met(bool kernel_answers);
  /// True if it is time to ask the peer's kernel. on_probe() takes the answer.
  bool probe_due(Time now) const { return wants_probe(now) && now >= probe_at_; }
  void on_probe(Time now, link::ProcessProbe::Answer answer);
  /// True if the kernel's answers are not needed now.
  bool probe_over() const { return !probe_active_; }
  /// Returns `ok`, or the status with which the session ends.
  Status check(Time now);
  Time deadline() const;

  /// The last sign of life over any path; Time{}: none yet.
  Time heard_at() const { return heard_at_; }
  /// How long neither engine nor responder has answered, although the peer owes something.
  Duration silent_for() const { return reported_silence_; }
  /// True if the peer is silent and its kernel says that the process exists.
  bool kernel_vouches() const { return kernel_vouches_; }
  /// News about a silence for which the kernel vouches: once when it has lasted for kWorthALine, and once
  /// when it is over.
  enum class News : std::uint8_t { none, lasts, over };
  News take_news();

  static constexpr Duration kRetryAfter = 20ms;
  static constexpr Duration kWorthALine = 10s;
  /// Errors that are further apart belong to different outages (kernels send one error per second).
  static constexpr Duration kErrorGapMax = 2500ms;

 private:
  static constexpr Duration kIdleBeforeKeepAlive = 250ms;
  static constexpr Duration kKeepAliveInterval = 1s;
  static constexpr Duration kUnmetKeepAliveInterval = 250ms;
  static constexpr Duration kContestedKeepAliveInterval = 60ms;
  static constexpr Duration kIdleBeforeProbe = 400ms;
  /// The first answer takes a round trip. Later answers show whether the process has ended meanwhile.
  static constexpr Duration kProbeIntervalFirst = 20ms;
  static constexpr Duration kProbeInterval = 200ms;
  static constexpr Duration kLateMax = 20ms;

  /// Both leave time for an answer before the peer timeout ends.
  Duration before_keep_alive() const { return std::min(kIdleBeforeKeepAlive, peer_timeout_ / 4); }
  Duration before_probe() const { return std::min(kIdleBeforeProbe, peer_timeout_ / 2); }
  Duration idle_by(Time now) const;
  void count_idle(Time now);
  void apply(const Refutation& refutation, Time now, Time asked);
  void judge(Suspicion suspicion, PeerState state, Duration lasted);
  Duration limit(const Verdict& verdict) const;
  Suspicion suspicion_of_errors() const;
  PeerState state_at_error() const { return known_at_error_ ? PeerState::met : PeerState::unmet; }
  /// True if one outage has brought at least two errors.
  bool outage() const { return error_ != Status::ok && last_error_ > first_error_; }
  bool refused() const { return error_ == Status::refused; }
  bool contested() const { return contested_since_ != kNever; }
  void note_error(Time now, Status error, bool known);
  /// Something, perhaps forged, says that the peer's port is closed. Asks the peer, but not before
  /// `ask_after` has passed since the last question.
  void contest(Time now, Duration ask_after);
  Duration keep_alive_interval(Time now) const;
  bool may_probe() const { return probes_ == Probes::of_all || (probes_ == Probes::of_met && met_); }
  bool wants_probe(Time now) const;
  bool news_of_end() const { return news_reported_ && reported_silence_ < kWorthALine; }

  const Duration peer_timeout_;
  const Duration stuck_timeout_;
  Probes probes_;
  bool expecting_ = false;
  bool met_ = false;
  Status verdict_ = Status::ok;

  Time heard_at_{};
  Time counted_until_{};
  Duration idle_{};  ///< silence of the process and its kernel
  Duration engine_idle_{};
  Duration reported_silence_{};
  bool news_reported_ = false;
  Time keep_alive_at_{};
  Time keep_alive_sent_{};

  bool probe_active_ = false;    ///< the kernel was asked since the peer was last heard
  bool probe_stood_ = false;     ///< a connection to the kernel has stood
  bool kernel_refuses_ = false;  ///< the kernel refuses, and the peer has not been heard since
  bool kernel_vouches_ = false;
  Time probe_at_{};  ///< when to ask the kernel next

  Status error_ = Status::ok;  ///< the last ICMP error since the last sign of life
  bool known_at_error_ = false;
  bool forgotten_ = false;  ///< an opening has ended the errors before `first_error_`
  Time first_error_{};
  Time last_error_{};
  Time contested_since_ = kNever;
};

}  // namespace cluster::reliability
