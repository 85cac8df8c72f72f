// How fast the frames of a stream leave: as fast as they reach the slowest listener, which is learnt from reports. Windows bound
// only what is kept; members share processors and report late, so a window small enough for a switch's port would stand still
// most of the time.
//
// A *train* is what was sent without a pause that was not the pace's. When enough of one has arrived it is judged: frames that
// reached the slowest listener more slowly than they left wait in some queue, so what was measured is the pace from now on, but
// at most an eighth slower if none was lost, and the next train goes slower still, so that the queue ends. After one that came
// as fast as it left the next goes a tenth faster (not soon after losses); at first twice as fast, until that is too much. A loss alone
// proves no queue: there are bad cables.
//
// Frames leave in bursts of kBurst, or as many as fit in kBurstTime: a shaper cuts and queues longer ones, and a port may
// hold few. After a delay of this side at most kBurstsLate bursts are made up for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/units.h"
#include "link/link.h"

namespace cluster::group {

class Pace {
 public:
  static constexpr Duration kFirst = 48us;  ///< between frames: 250 Mbit/s where they have 1500 bytes
  static constexpr Duration kShortest = 100ns;
  static constexpr Duration kLongest = 1ms;
  static constexpr std::size_t kBurst = 8;
  static constexpr Duration kBurstTime = 50us;
  static constexpr std::size_t kBurstsLate = 3;
  static constexpr std::uint64_t kTrainFirst = 64;  ///< frames of a train, while the pace is sought
  static constexpr std::uint64_t kTrain = 256;      ///< and later
  static constexpr unsigned kHoldTrains = 4;        ///< after one with losses, before one goes faster

  Duration interval() const { return interval_; }
  /// Frames that go at once.
  std::size_t burst() const {
    return std::clamp(static_cast<std::size_t>(kBurstTime / interval_), kBurst, link::kBurstMax);
  }
  /// Frames that may leave now: none, or a burst or more.
  std::size_t allowance(Time now) const {
    const Duration early = next_ - now;
    if (early > Duration::zero()) return 0;
    return burst() * std::min<std::size_t>(1 + static_cast<std::size_t>(-early / (interval_ * burst_count())), kBurstsLate);
  }
  /// When the next burst may leave.
  Time ready() const { return next_; }

  void on_sent(Time now, std::size_t frames) {
    const Duration most = interval_ * burst_count() * static_cast<std::int64_t>(kBurstsLate - 1);
    next_ = std::max(next_, now - most) + interval_ * static_cast<std::int64_t>(frames);
  }
  /// What leaves next does not follow what has left, or was held back by something else than the pace.
  void end_train() { train_ = {}; }
  void on_lost() { ++train_.lost; }
  /// The slowest listener had everything before `reached` by then.
  void on_arrival(Time at, std::uint64_t reached);
  /// Members that were asked again and again say nothing.
  void on_silence();

 private:
  struct Train {
    bool begun = false;
    Time begin{};
    std::uint64_t first = 0;
    std::size_t lost = 0;
  };

  std::int64_t burst_count() const { return static_cast<std::int64_t>(burst()); }
  static Duration within(Duration interval) { return std::clamp(interval, kShortest, kLongest); }

  Duration interval_ = kFirst;
  Time next_{};
  Train train_;
  Duration found_ = kFirst;  ///< the pace of trains that neither end a queue nor look for more
  bool draining_ = false;    ///< this train ends a queue
  unsigned hold_ = 0;        ///< trains until it goes faster again
  bool seeking_ = true;      ///< it has never been too fast
};

}  // namespace cluster::group
