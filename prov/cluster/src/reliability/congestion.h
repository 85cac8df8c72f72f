// How many frames may travel at once. Slow start until the first loss, then one frame more per round
// trip; a round with losses costs three tenths, once; a timeout leaves the floor, from where slow
// start leads back to seven tenths of what was. If all repairs since the last reduction turn out to
// have been in vain, nothing was lost and the reduction is taken back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/sequence.h"

namespace cluster::reliability {

class Congestion {
 public:
  explicit Congestion(std::size_t window_max);

  std::size_t window() const { return window_; }
  /// So many frames arrived; `travelling` were under way before. A window that was not made use of
  /// does not grow.
  void acknowledged(std::size_t frames, std::size_t travelling);
  /// Transmissions up to `latest` were lost; `next` is the number of the next one.
  void lost(Sequence latest, Sequence next);
  void timed_out(Sequence next);
  void repaired() { ++repairs_; }
  void repaired_in_vain(std::size_t frames);

  static constexpr std::size_t kFirst = 32;
  static constexpr std::size_t kFloor = 4;

 private:
  void remember(Sequence next);

  std::size_t window_max_;
  std::size_t window_;
  std::size_t threshold_;   ///< slow start ends here
  std::size_t earned_ = 0;  ///< acknowledgements towards the next frame of window
  bool reduced_ = false;    ///< and the reduction may still turn out to be wrong
  bool any_reduction_ = false;
  Sequence round_end_;  ///< losses of transmissions before this one are already paid for
  std::size_t window_before_ = 0;
  std::size_t threshold_before_ = 0;
  std::size_t repairs_ = 0;  ///< since the reduction
  std::size_t in_vain_ = 0;  ///< of those
};

}  // namespace cluster::reliability
