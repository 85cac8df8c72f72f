// How many frames may travel at once. Two signs show that a path is too full: frames queue, and
// frames are lost. Ethernet loses frames for other reasons as well (bad cables, full receive rings, a
// policer), so a loss alone proves little. Each *round* (until a frame that was sent after the round's begin
// is acknowledged) is judged as a whole:
//
//   delay    shortest round trip of the round beyond the shortest of the last ten seconds: a queue
//            that stood all the round, not one that came and went. Time that frames lie unread at either
//            end is not part of it (it is part of the reply time): a process that computes, or waits for a
//            processor, is no queue
//   share    of the round's frames that were lost
//
//   a queue    delay beyond target (kTargetDelay, or half the shortest round trip if that is longer) in two
//              rounds running: the window falls in proportion to the excess, at most by half, but not
//              below the first window, since others may have caused some of the queue
//   overflow   losses while even a short queue stands, or frames lie unread in a ring: seven tenths remain
//   a policer  more than a fifth lost, whatever the delay: the window falls by that share, at most by half
//
// A reduction is carried out over the next round, in proportion to what arrives (RFC 6937's argument: sending neither
// stops nor bursts), and taken back if all retransmissions since turn out to have been spurious. Otherwise the window
// doubles each round up to a threshold, then gains a frame a round; after a few rounds without a queue the threshold
// is void, so free capacity is found in a few round trips wherever it lies. The window does not grow on a sample that
// shows a queue, nor while less than half of it is used.
//
// Sources: Swift (Kumar et al., SIGCOMM 2020) for the target and the proportional decrease, BBR (Cardwell
// et al., 2016) for the forgetting minimum and the indifference to random loss, HyStart++ (RFC 9406) for
// leaving slow start by delay.
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

  /// What one acknowledgement brought.
  struct AckSample {
    std::size_t arrived = 0;             ///< frames acknowledged for the first time
    std::size_t in_flight = 0;           ///< how many were under way before
    TransmissionNumber largest_acked;    ///< transmission known to have arrived
    TransmissionNumber next;             ///< number of the next transmission
    std::optional<Duration> round_trip;  ///< of the network, if it makes a sample
    std::optional<Duration> reply;  ///< the same with host delay and the peer's delay of its acknowledgement
  };

  std::size_t window() const { return window_; }
  /// True while the window still looks for its limit.
  bool in_slow_start() const { return window_ < threshold_ && falling_ == 0; }
  void on_ack(Time now, const AckSample& ack);
  void on_lost(std::size_t frames) { round_.lost += frames; }
  /// Nothing was acknowledged for several retransmission timeouts. The window falls to its minimum, from where it
  /// doubles again.
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
