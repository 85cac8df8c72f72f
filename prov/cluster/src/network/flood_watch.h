// Notices a flood of frames that belong to no session, and has the link thin it out (link/thinning.h). A frame that reaches
// the endpoint costs it a wake-up and a system call, whatever is done with it then: most of what a flood costs is spent
// before the frame is looked at.
//
// Three classes are counted, each with limits of its own: frames without a mark of this endpoint, whatever becomes of them; and, if no
// session takes them, those with the mark that unknown sources get to see, and those with the mark of members, which a host may have
// guessed. kPerInterval of each class in kInterval are as many as may come, and kBurst at once: a crowd that asks together is not
// a flood. No crowd asks by what names a session that is not of this process, or by nonsense: each of these counts as kUselessWeight
// towards kBurst, so that few hundred of them are enough to know a flood. If more come, those of the first class have to wait aside,
// and those of the others are halved until they are not more. Frames in the sessions of members are never thinned: where others have
// their mark, the link gets to know which these are.
//
// A peer whose frame was dropped repeats it, as if the network had lost it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/units.h"
#include "link/link.h"

namespace cluster::network {

/// One class of frames.
class FloodLevel {
 public:
  static constexpr std::int64_t kPerInterval = 32;
  static constexpr std::int64_t kBurst = 8192;

  static constexpr std::int64_t kUselessWeight = 16;

  void note(std::uint64_t frames) { seen_ += static_cast<std::int64_t>(frames); }
  void note_useless() {
    ++seen_;
    extra_ += kUselessWeight - 1;
  }
  /// So many intervals are over. True if the shift is another one.
  bool review(std::int64_t intervals);
  unsigned shift() const { return shift_; }

 private:
  std::int64_t seen_ = 0;        ///< frames since the last review
  std::int64_t extra_ = 0;       ///< what they count beyond that
  std::int64_t spare_ = kBurst;  ///< frames beyond kPerInterval that may still come
  unsigned shift_ = 0;
};

class FloodWatch {
 public:
  static constexpr Duration kInterval = link::Thinning::kAsideInterval;

  /// The sessions that have the mark of members, in any order.
  using Members = std::function<std::vector<std::uint32_t>()>;

  /// `link` may be null: then nothing comes.
  FloodWatch(link::Link* link, const link::SessionMarks& marks, Members members)
      : link_(link), members_(std::move(members)), asked_for_{.marks = marks} {}

  /// A frame that is of no session, or addressed to one that does not take it.
  void note_session(Time now, std::uint32_t session);
  /// The same, of what need not be a frame.
  void note_bytes(Time now, ConstBytes bytes);
  /// Of which nothing is known but how many there have been so far.
  void note_total(Time now, std::uint64_t frames);
  /// Takes a look if it is time.
  void review(Time now) {
    if (now >= next_) [[unlikely]]
      review_now(now);
  }
  /// When the next look is due, also if nothing comes: frames wait aside, and when the flood is over the link is to stop that.
  Time deadline() const { return thins() ? next_ : kNever; }
  bool thins() const { return unknown_.shift() != 0 || unmarked_.shift() != 0 || member_.shift() != 0; }

 private:
  void begin(Time now) {
    if (next_ == kNever) next_ = std::max(now, last_) + kInterval;
  }
  void review_now(Time now);

  link::Link* link_;
  Members members_;
  link::Thinning asked_for_;  ///< of the link
  FloodLevel member_;
  FloodLevel unknown_;
  FloodLevel unmarked_;
  std::uint64_t total_ = 0;  ///< as noted last
  Time last_{};              ///< look
  Time next_ = kNever;       ///< kNever: nothing has come since the last one
};

}  // namespace cluster::network
