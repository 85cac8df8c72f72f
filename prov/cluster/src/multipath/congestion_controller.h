// Limits how many frames may be in flight on a path. docs/protocol.md 4.5 has the rules, their reasons and
// sources. A round lasts until a frame is acknowledged that was sent after the round began. When a round
// ends, the controller looks for two signs of congestion in the whole round. The first sign is a queue that
// was never empty during the round. In this case the round's shortest round trip exceeds the shortest of the
// last ten seconds by more than a target. The controller reduces the window when it has found this sign in
// two successive rounds, but not below kInitialWindow. The second sign is losses: any loss while there is a
// queue, or the loss of a large share of the round's frames.
//
// While a process computes or waits for a processor, frames lie unread at one end of the path. The reply time
// contains this time, but the network round trip does not. The first sign uses the network round trip. The
// rule about any loss uses the reply time, because the buffer of a receiver that does not poll may be full.
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
    std::size_t in_flight = 0;           ///< frames in flight before this acknowledgement
    TransmissionNumber largest_acked;    ///< largest transmission known to have arrived
    TransmissionNumber next;             ///< number of the next transmission
    std::optional<Duration> round_trip;  ///< network round trip, if there is a sample
    std::optional<Duration> reply;       ///< round trip with host delays and the peer's ack delay
  };

  std::size_t window() const { return window_; }
  /// Returns the shortest round trip of the last ten seconds, or zero if there is no sample yet.
  Duration shortest_round_trip() const { return base_.known() ? base_.get() : Duration::zero(); }
  bool in_slow_start() const { return window_ < threshold_ && falling_ == 0; }
  void on_ack(Time now, const AckSample& ack);
  void on_lost(std::size_t frames) { round_.lost += frames; }
  /// Called after several timeouts without an answer. Reduces the window to its minimum. From there, slow
  /// start enlarges the window again.
  void on_persistent_timeout();
  void on_retransmit() { ++undo_.retransmits; }
  void on_spurious_retransmits(std::size_t frames);

  static constexpr std::size_t kInitialWindow = 32;
  static constexpr std::size_t kMinimumWindow = 4;
  static constexpr Duration kTargetDelay = 100us;

 private:
  static constexpr Duration kMinRttMemory = 10s;
  static constexpr Duration kDelayNoise = 20us;  ///< shorter delays do not count as a queue
  static constexpr unsigned kCalmRounds = 4;
  /// The loss of a fifth of a round's frames is no sign of congestion by itself. The loss of more is.
  static constexpr std::size_t kLossTolerance = 5;

  struct Round {
    TransmissionNumber end;  ///< the round is over when this transmission or a later one has arrived
    std::size_t arrived = 0;
    std::size_t lost = 0;
    Duration shortest = Duration::max();
    Duration shortest_reply = Duration::max();
  };

  Duration target() const;
  void judge();
  void grow(const AckSample& ack);
  void fall(std::size_t arrived);
  /// Lowers the window to `to` in the course of a round.
  void reduce(std::size_t to);
  void remember();

  std::size_t window_max_;
  std::size_t window_;
  std::size_t threshold_;       ///< slow start ends at this window
  std::size_t earned_ = 0;      ///< acknowledgements towards the next step of the window, up or down
  std::size_t falling_ = 0;     ///< frames by which the window must still fall
  std::size_t fall_begin_ = 0;  ///< falling_ when the fall began
  std::size_t fall_round_ = 1;  ///< the number of arrivals over which the window falls
  WindowedMin base_{kMinRttMemory};
  Round round_;
  bool look_beneath_ = false;  ///< the shortest round trip is old: drain the queue once to measure it again
  bool queued_before_ = false;
  unsigned quiet_rounds_ = 0;
  /// The state that is needed to undo the last reduction (RFC 4015).
  struct Undo {
    bool possible = false;
    std::size_t window = 0;  ///< the window before the reduction
    std::size_t threshold = 0;
    std::size_t retransmits = 0;  ///< retransmissions since the reduction
    std::size_t spurious = 0;     ///< how many of these were spurious
  } undo_;
};

}  // namespace cluster::multipath
