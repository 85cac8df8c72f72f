// Controls how fast the frames of a stream are sent: as fast as the slowest path to a listener carries them
// (docs/protocol.md 9.3). A window cannot control the speed, because members share processors and therefore
// report late. A window small enough for the buffer of a switch port would be full most of the time. The
// windows of a group only limit how many frames are kept. Because reports are late, they say little about
// when frames arrived. Therefore the pace depends mainly on losses. The pace is judged once for each *train*
// of frames, by the losses of the listener that missed most:
//
//   many (kShareTolerated)      The stream sends faster than the path can carry. The pace decreases by the
//                               share of lost frames, and a little more to drain the queue.
//   fewer, and a queue          Others use the path too. The pace decreases like the rate of a flow, but not
//                               below half of the rate at which this stream alone last filled the path.
//   none, or no queue           If the pace, and not this side's own work, limited the speed, the pace
//                               increases: the interval between frames shrinks by a sixteenth (before the
//                               first losses by a quarter). Losses without a queue come from a bad cable, or
//                               from a member that reads too late, so they do not prevent the increase.
//
// Frames are sent in bursts. A burst has kBurst frames, or as many as the pace allows in kBurstTime if these
// are more. Shapers queue or drop longer bursts. Longer bursts can also overflow the buffer of a switch port.
// After a delay on this side, at most kBurstsLate bursts are sent at once.
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
  static constexpr Duration kFirst = 48us;  ///< between two frames; 250 Mbit/s with frames of 1500 bytes
  static constexpr Duration kShortest = 100ns;
  static constexpr Duration kLongest = 1ms;
  static constexpr std::size_t kBurst = 8;
  static constexpr Duration kBurstTime = 50us;
  static constexpr std::size_t kBurstsLate = 3;
  static constexpr std::uint64_t kTrainFirst = 64;      ///< frames in a train until the first loss
  static constexpr std::uint64_t kTrain = 256;          ///< frames in a train after that
  static constexpr std::uint64_t kShareTolerated = 32;  ///< one lost frame in this many is tolerated
  /// There is a queue if the shortest round trip of a train exceeds the shortest of the last ten seconds by
  /// more than this, and by more than half of the latter. Flows use the same limits
  /// (multipath/congestion_controller.h).
  static constexpr Duration kQueue = 100us;
  /// After a train with losses, the pace may increase only after this many further trains.
  static constexpr unsigned kHoldTrains = 2;

  Duration interval() const { return pacer_.interval(); }
  /// Returns the number of frames in one burst.
  std::size_t burst() const { return burst_at(interval()); }
  /// Returns the number of frames that may be sent now: zero, or a multiple of burst().
  std::size_t allowance(Time now) const {
    const std::size_t frames = pacer_.allowance(now);
    return frames - frames % burst();
  }
  /// Returns the time when the next burst may be sent.
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
  /// Called when there is no frame to send, or a window is full. The first frames after the pause have waited
  /// for something other than the pace, so they do not count in Train::followed.
  void on_pause() { follows_ = false; }
  /// Called with the time from the transmission of a frame to the report of the slowest listener, without the
  /// time that the listener waited before it reported. Only frames that were never repaired are measured.
  void on_round_trip(Time now, Duration round_trip) {
    shortest_.sample(now, round_trip);
    train_.shortest = std::min(train_.shortest, round_trip);
  }
  /// Returns true if the current train is complete. Then the caller must call judge(). `reached`: all
  /// listeners have the frames before this sequence number.
  bool train_over(std::uint64_t reached) const {
    return reached - train_.first >= (seeking_ ? kTrainFirst : kTrain);
  }
  /// Losses of frames before this sequence number do not count, because these frames were sent before the
  /// pace was reduced.
  std::uint64_t counts_from() const { return counts_from_; }
  /// Judges the train that ends before `reached`, and adapts the pace. `sent`: the sequence number after the
  /// last frame sent. `missed`: the largest number of frames that a listener missed in the train.
  void judge(std::uint64_t reached, std::uint64_t sent, std::uint64_t missed);
  /// Called when members do not answer repeated questions. Halves the pace and searches for the right pace
  /// again.
  void on_silence();

 private:
  struct Train {
    std::uint64_t first = 0;
    Duration busy{0};           ///< the time needed to send the frames counted in `followed`
    std::int64_t followed = 0;  ///< number of frames that waited only for the pace
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
    // The next burst is sent when the old pace would have sent it.
    pacer_.on_sent(next, (kBurstsLate - 1) * burst);
  }
  static Duration within(Duration interval) { return std::clamp(interval, kShortest, kLongest); }

  /// The estimated interval at which this stream alone uses the whole bandwidth of the path. With a shorter
  /// interval, frames were lost.
  Duration full_ = kFirst;
  multipath::Pacer pacer_{kFirst, kBurstsLate* kBurst};
  Time last_{};           ///< when the last frame was sent
  bool follows_ = false;  ///< the next frame was already waiting when the last one was sent
  Train train_;
  std::uint64_t counts_from_ = 0;
  WindowedMin shortest_{10s};  ///< the shortest round trip
  unsigned hold_ = 0;          ///< remaining trains before the pace may increase
  bool seeking_ = true;        ///< true until the first losses: the stream has not been too fast yet
};

}  // namespace cluster::group
