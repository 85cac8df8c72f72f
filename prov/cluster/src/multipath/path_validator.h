// Path validation (RFC 9000 section 8.2; docs/protocol.md 4.8, 4.9): data is sent on a path only after the peer has answered a challenge
// over it, and no more once the path has failed. Until it is validated (again) it is challenged at doubling intervals. A failed path also
// returns if a frame that was sent on it after the failure arrives, or if the loss that made it fail was spurious and no challenge was sent
// since. An EtherType path fails with the first loss, since the IP path beside it carries everything; if it fails again soon after it was
// validated it drops some frames all the time (a policer), so the intervals begin anew only after it has been validated for
// `trusted_after`.
//
// Invariants: challenges are due only while the path is not validated; the interval never shrinks except at a
// failure. There is no timer: challenges leave beside the flow's own frames, so an idle flow sends none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/address.h"
#include "base/environment.h"
#include "base/units.h"

namespace cluster::multipath {

class PathValidator {
 public:
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

  PathValidator(const Rules& rules, bool validated)
      : rules_(rules), validated_(validated), proven_(validated) {}

  bool validated() const { return validated_; }
  /// True if it has ever been validated: a path that is proven and not validated has failed.
  bool proven() const { return proven_; }

  /// A frame that was sent on it at `sent_at` has been acknowledged.
  Event on_acked(Time now, Time sent_at);
  /// The peer has answered the challenge of time `asked`. This says nothing of a failure since then.
  Event on_response(Time now, Time asked);
  /// A frame of it is retransmitted on another path. True if this makes the path fail.
  bool on_unanswered(Time now);
  void fail(Time now);
  /// Nothing was lost: takes the last failure back unless a challenge was sent since.
  void on_spurious_loss();

  bool challenge_due(Time now) const { return !validated() && now >= challenge_at_; }
  unsigned challenges() const { return challenges_; }
  Event on_challenge_sent(Time now);

  static constexpr unsigned kChallengesBeforeWarning = 6;
  static constexpr Duration kChallengeIntervalMin = 2ms;
  static constexpr Duration kChallengeIntervalMax = 1s;

 private:
  Duration interval() const;
  Event validate(Time now);

  Rules rules_;
  bool validated_;
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

/// The questions that this side has sent, and whose answers it awaits. Each carries 64 bits drawn for it alone (RFC 9000 8.2.1): an answer
/// that repeats them comes from a host that receives what is sent to that address. The last kRemembered are good for an answer, each once.
/// An answer proves something about some moment since the question, not about now: a host on the way may have held it back.
class PathChallenges {
 public:
  explicit PathChallenges(Random& random) : random_(random) {}

  /// What a challenge to this address has to carry.
  std::uint64_t draw(Time now, const SocketAddress& to) {
    const std::uint64_t data = random_.next();
    if (sent_.size() < kRemembered) {
      sent_.push_back({data, to, now});
    } else {
      sent_[next_++ % kRemembered] = {data, to, now};
    }
    return data;
  }
  /// When the question was sent, if the answer repeats what was sent to the address that it comes from.
  std::optional<Time> answered(std::uint64_t data, const SocketAddress& from) {
    const auto found = std::ranges::find_if(
        sent_, [&](const Challenge& challenge) { return challenge.data == data && challenge.to == from; });
    if (found == sent_.end()) return std::nullopt;
    found->to = {};
    return found->at;
  }
  std::size_t footprint() const { return sent_.capacity() * sizeof(Challenge); }

 private:
  /// Twice as many as there are paths to one peer, IP and EtherType.
  static constexpr std::size_t kRemembered = 32;

  struct Challenge {
    std::uint64_t data;
    SocketAddress to;
    Time at;
  };

  Random& random_;
  std::vector<Challenge> sent_;
  std::size_t next_ = 0;  ///< the oldest, once there are kRemembered
};

}  // namespace cluster::multipath
