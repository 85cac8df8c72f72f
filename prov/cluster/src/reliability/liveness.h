// Decides whether a peer that owes an acknowledgement is still alive, and when to send it a keep-alive
// (docs/protocol.md 2.5). A peer that owes nothing is not watched. But it gets a keep-alive after each
// refresh interval, so that firewalls and address translators between the two nodes do not forget the
// session. Two tables contain the rules. `kVerdicts` says how long each suspicion must last before the
// session ends, and with which status it ends. `kRefutations` says which suspicions each kind of evidence
// ends.
//
// This side sends keep-alives to a silent peer. If the peer stays silent, or if an ICMP error says that the
// peer's port is unreachable, this side also asks the peer's kernel. The kernel knows whether the process
// exists, even if the process is stopped (link/process_probe.h).
//
// Silence counts only while this side itself runs. If check() is called at most kLateMax after deadline(),
// all the silence that was not counted yet counts. If check() is called later, only kLateMax of its delay
// counts. The silence from the last count to the deadline then counts only in part, in the ratio of kLateMax
// to the delay. So a host that was suspended does not suspect its peers because of its own absence. On
// crowded nodes, where such delays are frequent, a peer that waits for a processor gets more time. The ages
// of ICMP errors do not include the rest of the delay either, because during that time this side could not
// read the peer's answers.
//
// Silence does not count during an outage either (base/outage.h). kVerdicts says which suspicions wait during
// an outage.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/outage.h"
#include "base/status.h"
#include "base/units.h"
#include "link/process_probe.h"

namespace cluster::reliability {

enum class Suspicion : std::uint8_t {
  silent,       ///< no sign of life, not even from the peer's kernel
  stuck,        ///< no sign of life from the peer's engine
  port_closed,  ///< an ICMP error "port unreachable" that quotes a frame of ours
  /// An ICMP error "host unreachable" or "network unreachable" that quotes a frame of ours.
  host_unreachable,
  /// A firewall refuses a frame of ours: on this host, or with an ICMP error that quotes the frame.
  prohibited,
  /// A reset quotes a frame of ours, and says that the frame came from an address which is not ours.
  translated,
  kernel_refuses,  ///< the peer's kernel refuses a connection, or resets one
};

enum class PeerState : std::uint8_t {
  any,
  unmet,  ///< the peer has not answered in this session
  met,    ///< the peer has answered
  /// The peer has answered. In addition, its kernel has accepted a connection at least once, or an ICMP error
  /// says that its port is closed.
  corroborated,
};

/// What becomes of a suspicion during an outage.
enum class InOutage : std::uint8_t {
  waits,  ///< the clock of the suspicion stands still, and the errors behind the suspicion are forgotten
  /// The clock of the suspicion goes on, because an outage does not cause the errors or resets behind the
  /// suspicion.
  goes_on,
};

struct Verdict {
  Suspicion suspicion;
  PeerState state;
  InOutage in_outage;
  Status status;
  /// How long the suspicion must last. For port_closed, host_unreachable, prohibited and translated, this
  /// time begins with the first error or reset.
  Duration lasts;
};

inline constexpr Duration kPeerTimeout{-1};  ///< stands for the peer timeout that the user has set
/// Stands for the stuck timeout that the user has set. If the user has set 0, the suspicion never ends the
/// session.
inline constexpr Duration kStuckTimeout{-2};
inline constexpr Duration kStartingTolerated = 950ms;
inline constexpr Duration kRefusedTolerated = 300ms;
inline constexpr Duration kUnreachableTolerated = 3s;
inline constexpr Duration kEndedTolerated = 500ms;

/// The first row that matches the suspicion and the state of the peer decides. If there is no such row, the
/// session goes on.
inline constexpr Verdict kVerdicts[] = {
    {Suspicion::silent, PeerState::any, InOutage::waits, Status::unreachable, kPeerTimeout},
    {Suspicion::stuck, PeerState::any, InOutage::waits, Status::stuck, kStuckTimeout},
    // The peer may be starting.
    {Suspicion::port_closed, PeerState::unmet, InOutage::goes_on, Status::refused, kStartingTolerated},
    // The error may be forged. A live process answers a keep-alive within this time.
    {Suspicion::port_closed, PeerState::met, InOutage::goes_on, Status::ended, kRefusedTolerated},
    // "Host unreachable" is a soft error (RFC 1122 4.2.3.9): a switch that restarts causes this error, too.
    // So there is no row for a met peer: only the peer's silence ends the session. But the address of an
    // unmet peer may be wrong, so here the error ends the session.
    {Suspicion::host_unreachable, PeerState::unmet, InOutage::waits, Status::unreachable,
     kUnreachableTolerated},
    // There is no row for a met peer: somebody may correct a firewall that begins to refuse frames, so only
    // the peer's silence ends the session.
    {Suspicion::prohibited, PeerState::unmet, InOutage::goes_on, Status::prohibited, kStartingTolerated},
    // Within this time the peer may call this side, and the router that translates addresses may let that
    // call pass. There is no row for a met peer, because such a peer has accepted the address of this side.
    {Suspicion::translated, PeerState::unmet, InOutage::goes_on, Status::translated, kStartingTolerated},
    // There is no row for an unmet peer, because only the opening of a peer says whether its kernel answers
    // questions about the process.
    {Suspicion::kernel_refuses, PeerState::corroborated, InOutage::goes_on, Status::ended, Duration{0}},
    // A firewall may refuse the connection while the peer is silent for a moment. So the session ends only if
    // neither a frame nor an answer of the peer has arrived for this time.
    {Suspicion::kernel_refuses, PeerState::met, InOutage::goes_on, Status::ended, kEndedTolerated},
};

/// Grounds for a suspicion, one bit each. Evidence ends a set of them.
enum Matter : std::uint8_t {
  kSilence = 1,        ///< the silence of the process and its kernel
  kEngineSilence = 2,  ///< the silence of the engine, as in Suspicion::stuck
  kReported = 4,       ///< the silence of engine and responder, which the log reports
  kErrors = 8,         ///< ICMP errors, and the doubt whether the peer's port is open
  /// Like kErrors, but for openings, which may be forged: they end errors only once until the next sign of
  /// life.
  kErrorsOnce = 16,
  kRefusal = 32,  ///< the fact that the peer's kernel has refused a connection
  kProbe = 64,    ///< the doubt that makes this side ask the peer's kernel
  /// Resets with the reason foreign_source. Answers to keep-alives do not end these grounds, because a router
  /// that translates addresses lets such answers pass.
  kTranslation = 128,
};

enum class Evidence : std::uint8_t {
  frame,             ///< a frame that has a place in our session (Flow::receive)
  ethertype_frame,   ///< a valid frame over the EtherType path, which shows nothing about the IP path
  engine_answer,     ///< the answer to a path challenge
  responder_answer,  ///< the answer to a keep-alive
  kernel_vouches,    ///< the peer's kernel has accepted a connection, so the process exists
  /// An opening, or a connection over shared memory, that claims to come from the peer. Earlier errors may be
  /// about an earlier process.
  opening,
  owes_nothing,  ///< the peer has acknowledged everything
  owes_again,    ///< the peer begins to owe an acknowledgement
};

/// A row says which grounds for a suspicion a kind of evidence ends. An answer shows only that the peer was
/// alive when this side asked. A host on the path may keep answers for later, to make a dead peer look alive.
/// So the time since the question still counts as silence. An answer ends errors only if the first error
/// arrived before the question left. An answer ends a refusal or the probe only if the question left less
/// than before_probe() ago.
struct Refutation {
  Evidence evidence;
  PeerState state;
  unsigned ends;  ///< a set of bits of Matter
  /// The row applies only while the peer's engine has been silent for less than this time.
  Duration engine_silence_max = Duration::max();
};

/// If the kernel of an unmet peer accepts a connection, the process may be another program that has the port.
/// So such a connection ends the silence only until the engine has been silent for this time.
inline constexpr Duration kUnmetMax = 1min;

inline constexpr Refutation kRefutations[] = {
    {Evidence::frame, PeerState::any,
     kSilence | kEngineSilence | kReported | kErrors | kRefusal | kProbe | kTranslation},
    {Evidence::ethertype_frame, PeerState::any, kReported},
    {Evidence::engine_answer, PeerState::any,
     kSilence | kEngineSilence | kReported | kErrors | kRefusal | kProbe | kTranslation},
    {Evidence::responder_answer, PeerState::any, kSilence | kReported | kErrors | kRefusal},
    {Evidence::kernel_vouches, PeerState::unmet, kSilence, kUnmetMax},
    {Evidence::kernel_vouches, PeerState::met, kSilence | kErrors | kRefusal},
    {Evidence::opening, PeerState::any, kErrorsOnce},
    {Evidence::owes_nothing, PeerState::any, kErrors | kRefusal | kProbe | kTranslation},
    {Evidence::owes_again, PeerState::any, kSilence | kEngineSilence | kReported},
};

class Liveness {
 public:
  /// Says which kernels this side asks. If this side has a key, it asks only the kernels of met peers. A
  /// silent unmet peer most probably has another key, and its open TCP port must not keep the session alive.
  enum class Probes : std::uint8_t { none, of_met, of_all };
  /// `outage` must outlive the object. If it is null, silence always counts. `refresh_interval`: the time
  /// after which a peer that owes nothing gets a keep-alive; 0 means never.
  explicit Liveness(Duration peer_timeout, Duration stuck_timeout = Duration{0}, Probes probes = Probes::none,
                    const Outage* outage = nullptr, Duration refresh_interval = Duration{0})
      : peer_timeout_(peer_timeout),
        stuck_timeout_(stuck_timeout),
        refresh_interval_(refresh_interval),
        probes_(probes),
        outage_(outage) {}

  /// Called for each frame that has a place in our session (Flow::receive). `by_ethertype`: the frame arrived
  /// over an EtherType path.
  void on_sign_of_life(Time now, bool by_ethertype);
  enum class By : std::uint8_t { engine, responder };
  /// Called for an answer of the peer's engine or responder. `asked`: when the question left.
  void on_answer(Time now, Time asked, By by);
  /// Called for an opening, or a connection over shared memory, that claims to come from the peer. It may be
  /// forged.
  void forget_path_errors();
  /// Called with true when the peer begins to owe an acknowledgement, and with false when it owes nothing.
  void set_expecting(Time now, bool owed);
  /// Called for an ICMP error that quotes a frame of ours, or for a reset with the reason foreign_source.
  /// `known`: the peer has answered in this session. Returns true if the caller should retransmit a frame
  /// after kRetryAfter.
  bool on_path_error(Time now, Status error, bool known);
  /// Called for an ICMP error that any host may have forged.
  void on_unproven_path_error(Time now);
  bool keep_alive_due(Time now) const;
  /// Schedules the next keep-alive after `least` or after keep_alive_interval(), whichever is longer. `least`
  /// counts as at most a quarter of the peer timeout, so that several keep-alives fit into this timeout.
  void on_keep_alive_sent(Time now, Duration least = {});
  /// Called when the peer has answered for the first time, and when an address of the peer has changed.
  /// `kernel_answers`: the peer's kernel answers questions about the process, as far as this side knows.
  void on_met(bool kernel_answers);
  /// Returns true if it is time to ask the peer's kernel. The caller must pass the answer to on_probe().
  bool probe_due(Time now) const { return wants_probe(now) && now >= probe_at_; }
  void on_probe(Time now, link::ProcessProbe::Answer answer);
  /// Returns true if this side does not need the kernel's answers now.
  bool probe_over() const { return !probe_active_; }
  /// Returns `ok`, or the status with which the session must end.
  Status check(Time now);
  /// Returns when the caller must call check(), keep_alive_due(), probe_due() and take_news() again.
  Time deadline() const;

  /// Returns the time of the last sign of life over any path, or Time{} if there was none.
  Time heard_at() const { return heard_at_; }
  /// Returns when the peer or its kernel last showed that frames pass between the two nodes.
  Time reached_at() const { return std::max(heard_at_, vouched_at_); }
  bool expecting() const { return expecting_; }
  bool met() const { return met_; }
  /// Returns how long the peer and its kernel have been silent, as far as this silence counts.
  Duration idle_by(Time now) const;
  Time keep_alive_sent() const { return keep_alive_sent_; }
  /// Returns for how long the peer has owed something while neither its engine nor its responder was heard.
  /// Outages are included.
  Duration silent_for() const { return reported_silence_; }
  /// Returns true if the peer is silent and its kernel says that the process exists.
  bool kernel_vouches() const { return kernel_vouches_; }
  /// News for the log about a peer that is silent although its kernel says that the process exists. `lasts`:
  /// the silence has lasted for kWorthALine. `over`: the silence has ended. Each silence causes each of the
  /// two at most once.
  enum class News : std::uint8_t { none, lasts, over };
  News take_news();

  static constexpr Duration kRetryAfter = 20ms;
  static constexpr Duration kWorthALine = 10s;
  /// If two errors are further apart than this, they count as errors with different causes. The time is
  /// longer than a second, because kernels limit such errors to about one per second.
  static constexpr Duration kErrorGapMax = 2500ms;

 private:
  static constexpr Duration kIdleBeforeKeepAlive = 250ms;
  static constexpr Duration kKeepAliveInterval = 1s;
  static constexpr Duration kUnmetKeepAliveInterval = 250ms;
  static constexpr Duration kContestedKeepAliveInterval = 60ms;
  static constexpr Duration kIdleBeforeProbe = 400ms;
  /// The first question to the peer's kernel only starts a connection. The second question, after this time,
  /// gets the answer. Later questions find out whether the process has ended meanwhile.
  static constexpr Duration kProbeIntervalFirst = 20ms;
  static constexpr Duration kProbeInterval = 200ms;
  static constexpr Duration kLateMax = 20ms;

  /// The silence after which the first keep-alive leaves. It is so short that an answer can arrive within the
  /// peer timeout.
  Duration before_keep_alive() const { return std::min(kIdleBeforeKeepAlive, peer_timeout_ / 4); }
  /// The silence after which this side first asks the peer's kernel. It is so short that an answer can arrive
  /// within the peer timeout.
  Duration before_probe() const { return std::min(kIdleBeforeProbe, peer_timeout_ / 2); }
  Duration elapsed_by(Time now) const;
  void count_idle(Time now);
  void apply(const Refutation& refutation, Time now, Time asked);
  void judge(Suspicion suspicion, PeerState state, Duration lasted);
  Duration limit(const Verdict& verdict) const;
  Suspicion suspicion_of_errors() const;
  PeerState state_at_error() const { return known_at_error_ ? PeerState::met : PeerState::unmet; }
  /// Returns true if at least two errors have arrived, none of them more than kErrorGapMax after the one
  /// before.
  bool errors_repeat() const { return error_ != Status::ok && last_error_ > first_error_; }
  bool refused() const { return error_ == Status::refused; }
  bool contested() const { return contested_since_ != kNever; }
  void note_error(Time now, Status error, bool known);
  /// Called when an ICMP error, perhaps a forged one, or a refused connection raises doubt about the peer's
  /// port. Schedules a keep-alive to the peer, at least `ask_after` after the last keep-alive.
  void contest(Time now, Duration ask_after);
  Duration keep_alive_interval(Time now) const;
  /// Returns when a peer that owes nothing gets the next keep-alive.
  Time refresh_at() const {
    const bool refreshes = met_ && refresh_interval_ != Duration{0};
    return refreshes ? std::max(heard_at_, keep_alive_sent_) + refresh_interval_ : kNever;
  }
  bool may_probe() const { return probes_ == Probes::of_all || (probes_ == Probes::of_met && met_); }
  bool wants_probe(Time now) const;
  bool news_of_end() const { return news_reported_ && reported_silence_ < kWorthALine; }

  const Duration peer_timeout_;
  const Duration stuck_timeout_;
  const Duration refresh_interval_;
  Probes probes_;
  const Outage* const outage_;
  bool expecting_ = false;
  bool met_ = false;
  Status verdict_ = Status::ok;

  Time heard_at_{};
  Time vouched_at_{};  ///< when the peer's kernel last said that the process exists
  Time counted_until_{};
  Duration idle_{};  ///< how long the process and its kernel have been silent
  Duration engine_idle_{};
  Duration reported_silence_{};
  bool news_reported_ = false;
  Time keep_alive_at_{};
  Time keep_alive_sent_{};

  bool probe_active_ = false;    ///< this side has asked the peer's kernel since it last heard the peer
  bool probe_stood_ = false;     ///< the peer's kernel has accepted a connection at least once
  bool kernel_refuses_ = false;  ///< the kernel has refused a connection since the peer was last heard
  bool kernel_vouches_ = false;
  Time probe_at_{};  ///< when to ask the peer's kernel next

  Status error_ = Status::ok;  ///< the last ICMP error or reset that no evidence has ended
  bool known_at_error_ = false;
  bool forgotten_ = false;  ///< an opening has ended earlier errors since the last sign of life
  Time first_error_{};
  Time last_error_{};
  Time contested_since_ = kNever;
};

}  // namespace cluster::reliability
