// Path validation (RFC 9000 section 8.2; docs/protocol.md 4.8, 4.9): a path carries data only after the peer
// has answered a challenge over it, and no longer once it has failed. Until the path is validated (again),
// this side challenges it at doubling intervals. A failed path also returns if a frame that was sent on it
// after the failure arrives. It also returns if the loss that made it fail was spurious and no challenge was
// sent since. An EtherType path fails with the first loss, since the IP path beside it carries everything. If
// it fails again soon after validation, it probably drops some frames all the time (a policer). So the
// intervals begin anew only after the path has been validated for `trusted_after`.
//
// Invariants: challenges are due only while the path is not validated, and the interval shrinks only at a
// failure. There is no timer: challenges leave together with the flow's own frames, so an idle flow sends
// none.
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
  /// Events for the log: once when a path does not answer, once when it works (again).
  enum class Event : std::uint8_t { none, unanswered, works };

  struct Rules {
    /// The path fails after this many retransmissions on other paths without an arrival on this one.
    unsigned unanswered_max;
    Duration trusted_after;  ///< if validated for this long, a failed path is challenged at once
  };
  static constexpr unsigned kUnansweredMax = 3;
  static constexpr Duration kTrustedAfter = 1s;
  static constexpr Rules kIp{kUnansweredMax, Duration::zero()};
  static constexpr Rules kEthertype{1, kTrustedAfter};

  PathValidator(const Rules& rules, bool validated)
      : rules_(rules), validated_(validated), proven_(validated) {}

  bool validated() const { return validated_; }
  /// Returns true if the path has ever been validated. A path that is proven but not validated has failed.
  bool proven() const { return proven_; }

  /// Notes that a frame sent on the path at `sent_at` has been acknowledged.
  Event on_acked(Time now, Time sent_at);
  /// Notes that the peer has answered the challenge of time `asked`. The answer does not undo a later
  /// failure.
  Event on_response(Time now, Time asked);
  /// Notes that a frame of the path is retransmitted on another path. Returns true if this makes the path
  /// fail.
  bool on_unanswered(Time now);
  void fail(Time now);
  /// Undoes the last failure, since nothing was lost, unless a challenge was sent since.
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
  bool warned_ = false;            ///< the log has said that the path does not answer
  bool challenged_since_ = false;  ///< a challenge was sent since the last failure
  unsigned unanswered_ = 0;
  Time unanswered_since_{};
  unsigned challenges_ = 0;
  Time validated_at_{};
  Time failed_at_{};
  Time challenge_at_{};
};

/// The challenges that this side has sent and that wait for answers. Each carries 64 fresh random bits (RFC
/// 9000 8.2.1): an answer that repeats the bits comes from a host that receives the frames to that address.
/// The last kRemembered challenges can each be answered once. An answer proves that the path worked at some
/// time since the challenge, but not that it works now: a host on the way may have held the answer back.
class PathChallenges {
 public:
  explicit PathChallenges(Random& random) : random_(random) {}

  /// Draws and returns the bits that a challenge to this address must carry.
  std::uint64_t draw(Time now, const SocketAddress& to) {
    const std::uint64_t data = random_.next();
    if (sent_.size() < kRemembered) {
      sent_.push_back({data, to, now});
    } else {
      sent_[next_++ % kRemembered] = {data, to, now};
    }
    return data;
  }
  /// Returns when the challenge was sent, if the answer repeats its bits and comes from the challenged
  /// address.
  std::optional<Time> answered(std::uint64_t data, const SocketAddress& from) {
    const auto found = std::ranges::find_if(
        sent_, [&](const Challenge& challenge) { return challenge.data == data && challenge.to == from; });
    if (found == sent_.end()) return std::nullopt;
    found->to = {};
    return found->at;
  }
  std::size_t footprint() const { return sent_.capacity() * sizeof(Challenge); }

 private:
  /// Twice the number of IP and EtherType paths to one peer.
  static constexpr std::size_t kRemembered = 32;

  struct Challenge {
    std::uint64_t data;
    SocketAddress to;
    Time at;
  };

  Random& random_;
  std::vector<Challenge> sent_;
  std::size_t next_ = 0;  ///< index of the oldest, once there are kRemembered
};

}  // namespace cluster::multipath
