// Whether frames of one rail take the link's shortcut (docs/protocol.md 4.9). It is asked for; once a
// question has been answered it is open, until something may have been lost on it:
//
//            answered                    something may have been lost
//   closed ------------> open <-------+  open ------------------------> doubted
//      |                              |      |                             |
//      |                              +------+---- it was not lost --------+
//      +--- asked, and asked again at doubling distances, up to kChallengeIntervalMax ---+
//
// Who closes soon after it has opened loses again and again what goes there (a policer, say): so the
// distances begin anew only after it has been open for kTrustedAfter. Questions need no timer: they go out
// beside the flow's own frames.
#pragma once

#include <algorithm>

#include "base/units.h"

namespace cluster::multipath {

class Shortcut {
 public:
  bool open() const { return open_; }

  bool wants_question(Time now) const { return !open_ && now >= ask_at_; }
  void asked(Time now) {
    suspended_ = false;
    ask_at_ = now + distance_;
    distance_ = std::min(2 * distance_, kChallengeIntervalMax);
  }
  void answered(Time now) {
    if (open_) return;
    open_ = true;
    opened_at_ = now;
  }
  /// Something that may have gone there did not arrive, or its answer.
  void doubt(Time now) {
    if (!open_) return;
    open_ = false;
    suspended_ = true;
    const bool trusted = now - opened_at_ >= kTrustedAfter;
    if (trusted) distance_ = kChallengeIntervalMin;
    ask_at_ = trusted ? now : now + distance_;
  }
  /// What was sent again had arrived: the doubt was unfounded, if nobody has asked meanwhile.
  void unfounded() {
    open_ |= suspended_;
    suspended_ = false;
  }

  static constexpr Duration kChallengeIntervalMin = 2ms;
  static constexpr Duration kChallengeIntervalMax = 1s;
  static constexpr Duration kTrustedAfter = 1s;

 private:
  bool open_ = false;
  bool suspended_ = false;  ///< doubted, and not asked since
  Duration distance_ = kChallengeIntervalMin;
  Time ask_at_{};
  Time opened_at_{};
};

}  // namespace cluster::multipath
