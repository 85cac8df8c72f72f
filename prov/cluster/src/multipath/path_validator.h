// Path validation (RFC 9000 section 8.2): data is sent on a path only after the peer has answered a challenge
// over it, and no more once the path has failed.
//
//               answered                      failed, or too many retransmissions elsewhere
//   unvalidated ----------> validated <--+  validated --------------------------------------> failed
//        |                               |                                                      |
//        +--- challenged, and again at doubling intervals up to kChallengeIntervalMax ----------+
//
// A failed path also returns if a frame that was sent on it after the failure arrives, or if the loss that made it
// fail was spurious and no challenge was sent since. One state machine serves both kinds of path; they differ in
// Rules:
//
//   IP         several unanswered retransmissions in a row; challenged at once after a failure
//   EtherType  fails with the first loss, since the IP path beside it carries everything; a path that fails
//              again soon after it was validated drops some frames all the time (a policer), so the intervals
//              begin anew only after it has been validated for `trusted_after`
//
// Invariants: challenges are due only while the path is not validated; the interval never shrinks except at a
// failure. There is no timer: challenges leave beside the flow's own frames, so an idle flow sends none.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace cluster::multipath {

class PathValidator {
 public:
  enum class State : std::uint8_t { unvalidated, validated, failed };
  /// What is worth a line in the log: once when a path does not answer, once when it works (again).
  enum class Event : std::uint8_t { none, unanswered, works };

  struct Rules {
    /// The path fails after this many retransmissions on other paths without an arrival on this one.
    unsigned unanswered_max;
    Duration trusted_after;  ///< after this long as validated it is challenged at once when it fails
  };
  static constexpr unsigned kUnansweredMax = 3;
  static constexpr Duration kTrustedAfter = 1s;
  static constexpr Rules kIp{kUnansweredMax, Duration::zero()};
  static constexpr Rules kEthertype{1, kTrustedAfter};

  PathValidator(const Rules& rules, State state) : rules_(rules), state_(state), proven_(validated()) {}

  State state() const { return state_; }
  bool validated() const { return state_ == State::validated; }
  /// True if it has ever been validated.
  bool proven() const { return proven_; }

  /// A frame that was sent on it at `sent_at` has been acknowledged.
  Event on_acked(Time now, Time sent_at);
  /// The peer has answered the challenge of time `asked`. This says nothing of a failure since then.
  Event on_response(Time now, Time asked);
  /// A frame on it was not acknowledged in time and is retransmitted on another path. True if this makes the path
  /// fail.
  bool on_unanswered(Time now);
  void fail(Time now);
  /// Nothing was lost: takes the last failure back unless a challenge was sent since.
  void on_spurious_loss();

  bool challenge_due(Time now) const { return !validated() && now >= challenge_at_; }
  /// Challenges since the intervals began.
  unsigned challenges() const { return challenges_; }
  Event on_challenge_sent(Time now);

  static constexpr unsigned kChallengesBeforeWarning = 6;
  static constexpr Duration kChallengeIntervalMin = 2ms;
  static constexpr Duration kChallengeIntervalMax = 1s;

 private:
  Duration interval() const;
  Event validate(Time now);

  Rules rules_;
  State state_;
  bool proven_;
  bool warned_ = false;            ///< that it does not answer
  bool challenged_since_ = false;  ///< ...the last failure
  unsigned unanswered_ = 0;
  Time unanswered_since_{};
  unsigned challenges_ = 0;
  Time validated_at_{};
  Time failed_at_{};
  Time challenge_at_{};
};

}  // namespace cluster::multipath
