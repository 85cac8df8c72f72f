// How fast the frames of a stream leave: as fast as the slowest path to a listener carries them
// (docs/protocol.md 9.3). Windows only limit how much is kept. Members share processors and report late, so a
// window small enough for a switch's port would be closed most of the time. Arrival times therefore say
// little, but losses say all. They are judged in *trains* of frames, for the listener that missed most:
//
//   more than kShareTolerated   the path carries that much less than was sent: slower by this share, and a
//                               little more to drain the queue
//   some, and a queue           others send as well: slower, as flows give way, down to half of the rate that
//                               last filled the path alone
//   some                        a bad cable, or a late member: as before
//   few or none                 faster by a sixteenth (at first by a third), if the pace held frames back,
//                               and not this side's own work
//
// Frames leave in bursts of kBurst, or as many as fit into kBurstTime: a shaper queues or drops longer
// bursts, and a port may hold few. After a delay on this side at most kBurstsLate bursts catch up.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/units.h"
#include "base/windowed_min.h"
#include "link/link.h"
#include "multipath/pacer.h"

namespace cluster::group {

class Pace {
 public:
  static constexpr Duration kFirst = 48us;  ///< between frames: 250 Mbit/s for frames of 1500 bytes
  static constexpr Duration kShortest = 100ns;
  static constexpr Duration kLongest = 1ms;
  static constexpr std::size_t kBurst = 8;
  static constexpr Duration kBurstTime = 50us;
  static constexpr std::size_t kBurstsLate = 3;
  static constexpr std::uint64_t kTrainFirst = 64;      ///< frames of a train while the pace is sought
  static constexpr std::uint64_t kTrain = 256;          ///< frames of a train later
  static constexpr std::uint64_t kShareTolerated = 32;  ///< one lost frame in this many
  /// The same as for flows (multipath/congestion_controller.h).
  static constexpr Duration kQueue = 100us;
  /// Trains to wait after one with losses before speeding up.
  static constexpr unsigned kHoldTrains = 2;

  Duration interval() const { return pacer_.interval(); }
  /// Frames in one burst.
  std::size_t burst() const { return burst_at(interval()); }
  /// Frames that may leave now: none, or whole bursts.
  std::size_t allowance(Time now) const {
    const std::size_t frames = pacer_.allowance(now);
    return frames - frames % burst();
  }
  /// When the next burst may leave.
  Time ready() const { return pacer_.ready_at(burst()); }

  void on_sent(Time now, std::size_t frames) {
    if (follows_) {
      train_.busy += now - last_;
      train_.followed += static_cast<std::int64_t>(frames);
    }
    last_ = now;
    follows_ = true;
    pacer_.on_sent(now, frames);
  }
  /// The pace does not hold back the next frames: there were none, or they did not fit into a window.
  void on_pause() { follows_ = false; }
  /// `round_trip`: how long a frame that came in one piece took to the slowest listener and back.
  void on_round_trip(Time now, Duration round_trip) {
    shortest_.sample(now, round_trip);
    train_.shortest = std::min(train_.shortest, round_trip);
  }
  /// True if a train ends, now that all listeners have everything before `reached`. Then call judge().
  bool train_over(std::uint64_t reached) const {
    return reached - train_.first >= (seeking_ ? kTrainFirst : kTrain);
  }
  /// Losses of frames before this do not count: these frames left before the pace was reduced.
  std::uint64_t counts_from() const { return counts_from_; }
  /// Judges the train that ends with `reached`. The frames before `sent` have left. One listener missed
  /// `missed` frames, the others fewer.
  void judge(std::uint64_t reached, std::uint64_t sent, std::uint64_t missed);
  /// Members do not answer repeated questions, so what was known about the path is void.
  void on_silence();

 private:
  struct Train {
    std::uint64_t first = 0;
    Duration busy{0};           ///< the time for sending...
    std::int64_t followed = 0;  ///< ...these frames, which waited only for the pace
    Duration shortest = Duration::max();
  };

  static std::size_t burst_at(Duration interval) {
    return std::clamp(static_cast<std::size_t>(kBurstTime / interval), kBurst, link::kBurstMax);
  }
  bool queue_stands() const;
  bool holds_back(std::int64_t frames) const;
  void set_interval(Duration interval) {
    const Time next = ready();
    const std::size_t burst = burst_at(interval);
    pacer_ = multipath::Pacer(interval, kBurstsLate * burst);
    pacer_.on_sent(next, (kBurstsLate - 1) * burst);  // the next burst leaves when it would have
  }
  static Duration within(Duration interval) { return std::clamp(interval, kShortest, kLongest); }

  /// The interval at which this stream alone, as far as known, fills the path; a shorter one was too fast.
  Duration full_ = kFirst;
  multipath::Pacer pacer_{kFirst, kBurstsLate* kBurst};
  Time last_{};           ///< when the last frame left
  bool follows_ = false;  ///< the next frame was ready then
  Train train_;
  std::uint64_t counts_from_ = 0;
  WindowedMin shortest_{10s};  ///< the shortest round trip
  unsigned hold_ = 0;          ///< trains to wait before speeding up
  bool seeking_ = true;        ///< the stream has not been too fast yet
};

}  // namespace cluster::group
