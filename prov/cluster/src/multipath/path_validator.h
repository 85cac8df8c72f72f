// Whether a rail is believed in. Data is trusted only to a rail that has shown that it works; one that is
// doubted is asked by probes, which the peer's probe responder answers whatever its application does (and one
// that has never worked by trials, which its engine answers: who asks decides which):
//
//            answered                     failed, or kUnansweredMax repairs elsewhere without an arrival
//   untried ----------> up <--------+  up ------------------------------------> doubted (asked at once)
//      |                            |                                              |
//      +--- asked, and asked again at doubling distances, up to kChallengeIntervalMax ----------+
//
// After kChallengesBeforeWarning unanswered probes it is worth a line in the log, once until it works
// (again). Probes need no timer: they go out beside the flow's own frames, so a flow that is idle asks
// nothing.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"

namespace cluster::multipath {

class Health {
 public:
  enum class News : std::uint8_t { none, silent, works };

  /// The rail of first contact is believed in from the beginning.
  explicit Health(bool believed) : up_(believed), proven_(believed) {}

  bool up() const { return up_; }
  /// True if it has ever worked.
  bool proven() const { return proven_; }

  /// A frame that was sent on it at `sent_at` has arrived.
  News arrived(Time sent_at) {
    strikes_ = 0;
    if (up_ || sent_at < doubted_at_) return News::none;
    return believe();
  }
  /// The peer has answered over it.
  News answered() {
    strikes_ = 0;
    return up_ ? News::none : believe();
  }
  /// A frame on it got no answer and goes again on another. True if that was once too often.
  bool strike(Time now) {
    if (!up_ || ++strikes_ < kUnansweredMax) return false;
    doubt(now);
    return true;
  }
  void doubt(Time now) {
    if (!up_) return;
    up_ = false;
    strikes_ = asks_ = 0;
    doubted_at_ = ask_at_ = now;
  }

  bool wants_probe(Time now) const { return !up_ && now >= ask_at_; }
  /// How many have been sent since it worked last.
  unsigned asks() const { return asks_; }
  News asked(Time now) {
    ask_at_ = now + std::min<Duration>(kChallengeIntervalMin * (1 << std::min(asks_, kDoublings)),
                                       kChallengeIntervalMax);
    if (++asks_ <= kChallengesBeforeWarning || told_) return News::none;
    told_ = true;
    return News::silent;
  }

  static constexpr unsigned kUnansweredMax = 3;
  static constexpr unsigned kChallengesBeforeWarning = 6;
  static constexpr Duration kChallengeIntervalMin = 2ms;
  static constexpr Duration kChallengeIntervalMax = 1s;

 private:
  static constexpr unsigned kDoublings = 9;  ///< from kChallengeIntervalMin beyond kChallengeIntervalMax

  News believe() {
    const bool worth_a_word = told_ || !proven_;
    up_ = proven_ = true;
    told_ = false;
    asks_ = 0;
    return worth_a_word ? News::works : News::none;
  }

  bool up_;
  bool proven_;
  bool told_ = false;  ///< that it is silent
  unsigned strikes_ = 0;
  unsigned asks_ = 0;
  Time doubted_at_{};
  Time ask_at_{};
};

}  // namespace cluster::multipath
