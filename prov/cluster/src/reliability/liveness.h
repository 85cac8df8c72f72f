// Is the peer still there? Asked only while it owes an answer. Half a second of complete silence
// makes the engine ask the peer's probe responder, then every second; silence of `peer_timeout` is the end.
// Only silence that somebody listened to counts: a host that was suspended, or a process that was stopped,
// finds its clock far ahead and has asked nobody meanwhile.
// Complaints of the network end it sooner, but not at once: a peer may be on its way up or back.
#pragma once

#include "base/status.h"
#include "base/units.h"

namespace cluster::reliability {

class Liveness {
 public:
  explicit Liveness(Duration peer_timeout) : peer_timeout_(peer_timeout) {}

  /// The peer, or a witness, gave a sign of life.
  void heard(Time now, bool by_ethertype);
  /// Somebody calls by the peer's name, and is told how to reach us: what the network has complained about
  /// before, and perhaps tells only now, was about an earlier life. It is no sign of life: anybody can call.
  void called() { troubled_ = false; }
  /// Whether the peer owes an answer from now on.
  void expect(Time now, bool owed);
  /// Returns true if the complaint calls for another try at retry_after() from now.
  bool complaint(Time now, Status status);
  bool wants_probe(Time now);
  /// none, unreachable (silence, or the network says so) or refused (the port is closed).
  Status verdict(Time now);
  Time deadline() const;
  /// The last sign of life; Time{}: none yet.
  Time heard_at() const { return heard_at_; }

  static constexpr Duration kRetryAfter = 20ms;

 private:
  static constexpr Duration kSilenceBeforeProbe = 500ms;
  static constexpr Duration kProbeEvery = 1s;
  /// Longest silence between two looks that counts; somebody who listens looks at each kProbeEvery.
  static constexpr Duration kSilenceStepMax = 2s;
  static constexpr Duration kRefusedTolerated = 1s;
  static constexpr Duration kUnreachableTolerated = 3s;
  /// Complaints further apart than this are not about the same trouble (kernels send one a second).
  static constexpr Duration kErrorGapMax = 2500ms;

  void listen(Time now);
  void begin_listening(Time now);

  Duration peer_timeout_;
  bool expecting_ = false;
  Time heard_at_{};     ///< for who asks: verdicts go by silence that was listened to
  Duration silence_{};  ///< listened to, while expecting
  Time listened_at_{};
  Time probe_at_{};
  bool troubled_ = false;
  Time trouble_since_{};
  Time last_complaint_{};
  Status condemned_ = Status::ok;
};

}  // namespace cluster::reliability
