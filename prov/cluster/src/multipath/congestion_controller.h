// How many frames may travel at once on a path. docs/protocol.md 4.5 has the rules, their reasons and sources. Each *round* (until a frame
// that was sent after the round's begin is acknowledged) is judged as a whole by two signs: a queue that stood all the round (its shortest
// round trip beyond the shortest of the last ten seconds), and the share of its frames that were lost. Time that frames lie unread at
// either end is no queue, but part of the reply time: a process that computes, or waits for a processor.
#pragma once

#include <cstddef>
#include <optional>

#include "base/sequence.h"
#include "base/units.h"
#include "base/windowed_min.h"

namespace cluster::multipath {

class CongestionController {
 public:
  explicit CongestionController(std::size_t window_max);

  struct AckSample {
    std::size_t arrived = 0;             ///< frames acknowledged for the first time
    std::size_t in_flight = 0;           ///< how many were under way before
    TransmissionNumber largest_acked;    ///< transmission known to have arrived
    TransmissionNumber next;             ///< number of the next transmission
    std::optional<Duration> round_trip;  ///< of the network, if it makes a sample
    std::optional<Duration> reply;  ///< the same with host delay and the peer's delay of its acknowledgement
  };

  std::size_t window() const { return window_; }
  /// Of the last ten seconds; zero until measured.
  Duration shortest_round_trip() const { return base_.known() ? base_.get() : Duration::zero(); }
  bool in_slow_start() const { return window_ < threshold_ && falling_ == 0; }
  void on_ack(Time now, const AckSample& ack);
  void on_lost(std::size_t frames) { round_.lost += frames; }
  /// Several timeouts without an answer: the window falls to its minimum, and doubles again from there.
  void on_persistent_timeout();
  void on_retransmit() { ++undo_.retransmits; }
  void on_spurious_retransmits(std::size_t frames);

  static constexpr std::size_t kInitialWindow = 32;
  static constexpr std::size_t kMinimumWindow = 4;
  static constexpr Duration kTargetDelay = 100us;

 private:
  static constexpr Duration kMinRttMemory = 10s;
  static constexpr Duration kDelayNoise = 20us;  ///< shorter delays are no queue
  static constexpr unsigned kCalmRounds = 4;
  static constexpr std::size_t kLossTolerance = 5;  ///< one in so many may be lost

  struct Round {
    TransmissionNumber end;  ///< over when this transmission or a later one has arrived
    std::size_t arrived = 0;
    std::size_t lost = 0;
    Duration shortest = Duration::max();
    Duration shortest_reply = Duration::max();
  };

  Duration target() const;
  void judge();
  void grow(const AckSample& ack);
  void fall(std::size_t arrived);
  /// Takes the window to `to` in the course of a round.
  void reduce(std::size_t to);
  void remember();

  std::size_t window_max_;
  std::size_t window_;
  std::size_t threshold_;       ///< doubling ends here
  std::size_t earned_ = 0;      ///< acknowledgements towards the next frame of window, up or down
  std::size_t falling_ = 0;     ///< frames by which the window must still fall...
  std::size_t fall_begin_ = 0;  ///< ...of so many at the begin...
  std::size_t fall_round_ = 1;  ///< ...over so many arrivals
  WindowedMin base_{kMinRttMemory};
  Round round_;
  bool look_beneath_ = false;  ///< the shortest round trip may have become old: drain once to see
  bool queued_before_ = false;
  unsigned quiet_rounds_ = 0;
  /// What taking the last reduction back needs (RFC 4015).
  struct Undo {
    bool possible = false;
    std::size_t window = 0;  ///< before the reduction
    std::size_t threshold = 0;
    std::size_t retransmits = 0;  ///< since the reduction
    std::size_t spurious = 0;     ///< of those
  } undo_;
};

}  // namespace cluster::multipath
