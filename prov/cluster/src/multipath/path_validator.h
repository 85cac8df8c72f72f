// Path validation (RFC 9000 section 8.2; docs/protocol.md 4.8, 4.9). A new path is validated once the peer
// has answered a challenge on it, and until it fails. If no path is validated, the paths that have worked
// before carry data (path_manager.h). While a path is not validated, this side sends challenges on it at
// doubling intervals. A failed path becomes validated again in three cases. In the first case, the peer
// answers a challenge. In the second case, the peer acknowledges a frame that was sent on the path after the
// failure. In the third case, the loss that made the path fail was spurious, and no challenge has been sent
// since the failure. An EtherType path fails with the first loss, because its IP path can carry everything.
// If an EtherType path fails again soon after validation, something on the path probably drops frames all the
// time (a policer). Therefore the intervals restart from the shortest only after the path has been validated
// for `trusted_after`.
//
// Invariants: challenges are due only while the path is not validated. The interval becomes shorter only when
// the path fails, or when this side's address on the path is replaced. There is no timer. Challenges are sent
// together with the flow's own frames, so an idle flow sends none. There is one exception: a new address of
// this side is announced even if the flow is idle.
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
  /// Events for the log. `unanswered` is logged once when a path does not answer, and `works` when the path
  /// works for the first time or again.
  enum class Event : std::uint8_t { none, unanswered, works };

  struct Rules {
    /// The path fails when this many of its frames in a row are retransmitted on other paths.
    unsigned unanswered_max;
    Duration trusted_after;  ///< a path that was validated for this long is challenged as soon as it fails
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

  /// Records that a frame sent on the path at `sent_at` has been acknowledged.
  Event on_acked(Time now, Time sent_at);
  /// Records that the peer has answered the challenge that was sent at `asked`. The answer does not undo a
  /// failure after `asked`.
  Event on_response(Time now, Time asked);
  /// Records that a frame of the path is retransmitted on another path. Returns true if this makes the path
  /// fail.
  bool on_unanswered(Time now);
  void fail(Time now);
  /// Called after the address of this side on the path was replaced. The path is validated again when the
  /// peer answers a challenge from this address, and so shows that it knows the address. The first
  /// kAnnouncementsMax challenges leave even if no other frames do.
  void announce(Time now);
  /// Returns true if this side's address on the path is new, and the peer has perhaps not learnt it yet.
  bool announcing() const { return announcing_; }
  /// Returns when a challenge has to leave, even if nothing else does, or kNever.
  Time announce_at() const { return announcing_ && challenges_ < kAnnouncementsMax ? challenge_at_ : kNever; }
  /// Undoes the last failure, because nothing was lost. Has no effect if a challenge was sent after the
  /// failure.
  void on_spurious_loss();

  bool challenge_due(Time now) const { return !validated() && now >= challenge_at_; }
  unsigned challenges() const { return challenges_; }
  Event on_challenge_sent(Time now);

  static constexpr unsigned kChallengesBeforeWarning = 6;
  static constexpr unsigned kAnnouncementsMax = 32;  ///< all of them leave within 24 s
  static constexpr Duration kChallengeIntervalMin = 2ms;
  static constexpr Duration kChallengeIntervalMax = 1s;

 private:
  Duration interval() const;
  Event validate(Time now);

  Rules rules_;
  bool validated_;
  bool proven_;
  bool warned_ = false;            ///< the log has said that the path does not answer
  bool announcing_ = false;        ///< announce() was called since the path was last validated
  bool challenged_since_ = false;  ///< a challenge was sent since the last failure
  unsigned unanswered_ = 0;
  Time unanswered_since_{};
  unsigned challenges_ = 0;
  Time validated_at_{};
  Time failed_at_{};
  Time challenge_at_{};
};

/// The challenges that this side has sent and that wait for answers. Each carries 64 new random bits (RFC
/// 9000 8.2.1). An answer that repeats the bits comes from a host that receives frames sent to the challenged
/// address. The last kRemembered challenges can be answered, each of them once. An answer proves that the
/// path worked at some time since the challenge. It does not prove that the path works now, because a host
/// between the two sides may have delayed the answer.
class PathChallenges {
 public:
  explicit PathChallenges(Random& random) : random_(random) {}

  struct Asked {
    Time at;
    /// If the peer has said that one of its rails now has the challenged address: the number of this rail.
    std::optional<std::uint8_t> claimed_by;
  };

  /// Returns new random bits, which a challenge to this address must carry.
  std::uint64_t draw(Time now, const SocketAddress& to,
                     std::optional<std::uint8_t> claimed_by = std::nullopt) {
    const std::uint64_t data = random_.next();
    const Challenge challenge{data, to, {now, claimed_by}};
    if (sent_.size() < kRemembered) {
      sent_.push_back(challenge);
    } else {
      sent_[next_++ % kRemembered] = challenge;
    }
    return data;
  }
  /// Returns when the answered challenge was sent, and its `claimed_by`. Returns nothing unless the answer
  /// repeats the bits of a challenge and comes from the challenged address.
  std::optional<Asked> answered(std::uint64_t data, const SocketAddress& from) {
    const auto found = std::ranges::find_if(
        sent_, [&](const Challenge& challenge) { return challenge.data == data && challenge.to == from; });
    if (found == sent_.end()) return std::nullopt;
    found->to = {};
    return found->asked;
  }
  /// Returns true if a challenge that begins with these bits was sent to this address.
  bool sent(std::uint32_t first_bits, const SocketAddress& to) const {
    return std::ranges::any_of(sent_, [&](const Challenge& challenge) {
      return static_cast<std::uint32_t>(challenge.data) == first_bits && challenge.to == to;
    });
  }
  std::size_t footprint() const { return sent_.capacity() * sizeof(Challenge); }

 private:
  /// Twice the largest number of IP and EtherType paths to one peer.
  static constexpr std::size_t kRemembered = 32;

  struct Challenge {
    std::uint64_t data;
    SocketAddress to;
    Asked asked;
  };

  Random& random_;
  std::vector<Challenge> sent_;
  std::size_t next_ = 0;  ///< index of the oldest challenge, once there are kRemembered
};

}  // namespace cluster::multipath
