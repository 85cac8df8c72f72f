// Which frames of one path are lost, after RACK (RFC 8985; docs/protocol.md 4.3). As in RFC 9002 the peer names the largest transmission
// that has arrived, so a retransmission is never mistaken for the original. A frame whose latest transmission on this path is older than
// that one, and that the same acknowledgement does not include, was overtaken. It is lost once it is overdue.
//
// Transmissions are kept in the order they were sent. One is settled when its frame was acknowledged, declared lost
// or retransmitted on another path; until then it counts as in flight. Settled ones older than the newest arrival
// leave at the front, so each is looked at a constant number of times. By how many a frame was overtaken is counted
// in this list: what other paths carried meanwhile is no evidence.
//
// Invariants: in_flight() is the number of transmissions that are not settled; numbers ascend; a frame has at
// most one transmission in flight, over all paths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ring_queue.h"
#include "base/sequence.h"
#include "base/units.h"
#include "multipath/rtt_estimator.h"

namespace cluster::multipath {

/// A frame that was acknowledged for the first time, and its latest transmission; or the first of several
/// with consecutive sequences and transmission numbers, all of which were sent once.
struct AckedFrame {
  Sequence sequence;
  TransmissionNumber transmission;
  Time sent_at{};
  bool sent_once = false;  ///< so there is no doubt which transmission has arrived
  std::size_t count = 1;
  Time last_sent_at = sent_at;  ///< when the last of them left
};

class LossDetector {
 public:
  /// `count` frames have left, with sequences and transmission numbers from these on.
  void on_sent(Sequence sequence, TransmissionNumber transmission, Time now, std::size_t count = 1);
  void on_superseded(TransmissionNumber transmission);
  /// Call before on_largest_acked() of the same acknowledgement.
  void on_acked(const AckedFrame& frame, const RttEstimator& reply_time);
  /// The acknowledgement says that `largest` has arrived and, of the frames before `known_end`, which have.
  /// Returns when `largest` was sent if that is news and still remembered.
  std::optional<Time> on_largest_acked(TransmissionNumber largest, Sequence known_end);
  /// An acknowledgement covers the frames before `known_end` and brings nothing new of this path.
  void set_known_end(Sequence known_end) { known_end_ = known_end; }
  void on_spurious_loss(Time now, const RttEstimator& reply_time);

  /// Appends the frames that are lost by now, and sets deadline() for those that may be soon.
  void detect(Time now, const RttEstimator& reply_time, std::vector<Sequence>& lost);
  /// When the next frame becomes overdue; kNever if none has been overtaken.
  Time deadline() const { return deadline_; }
  /// The path has failed: appends everything that is in flight on it.
  void mark_all_lost(std::vector<Sequence>& lost);

  std::size_t in_flight() const { return in_flight_; }
  TransmissionNumber largest_acked() const { return largest_acked_; }
  bool knows(TransmissionNumber transmission) const { return find(transmission).has_value(); }
  bool remembers(Sequence sequence, TransmissionNumber transmission) const;
  Duration reorder_window(const RttEstimator& reply_time) const;
  std::size_t remembered() const { return transmissions_.size(); }
  std::size_t footprint() const { return transmissions_.footprint(); }

 private:
  struct Transmission {
    TransmissionNumber number;
    Sequence sequence;
    Time sent_at{};
    bool settled = false;
  };

  static constexpr std::size_t kTransmissionsKept = 64;  ///< settled ones, beside two for each in flight
  /// Transmissions of this path. RFC 9002 6.1.1 declares a frame lost if so many have overtaken it, RFC 8985 6.2
  /// gives up its reorder window. Here a frame that no more than these have overtaken waits one reply time longer.
  static constexpr std::size_t kPacketThreshold = 3;
  static constexpr std::int32_t kIdleDistanceMax = 1 << 30;  ///< numbers wrap around at twice this distance
  static constexpr int kReorderWindowMax = 4;                ///< round trips
  static constexpr int kReorderWindowDecay = 32;  ///< shrinks by this fraction per quiet round trip

  /// Index of the first record that is not older than this transmission.
  std::size_t position(TransmissionNumber number) const;
  std::optional<std::size_t> find(TransmissionNumber number) const;
  void settle(Transmission& record);
  Duration loss_delay(std::size_t overtaken_by, const RttEstimator& reply_time) const;
  void shrink(Time now, const RttEstimator& reply_time);

  RingQueue<Transmission> transmissions_;
  std::size_t in_flight_ = 0;
  bool any_acked_ = false;
  TransmissionNumber largest_acked_;  ///< transmission known to have arrived
  Time largest_sent_at_{};
  Sequence known_end_;   ///< the last acknowledgement covered the frames before this one
  Duration widened_{0};  ///< the reorder window, before its bounds
  Time shrink_at_{};
  Time widen_at_{};  ///< spurious losses of one round trip count once
  Time deadline_ = kNever;
};

}  // namespace cluster::multipath
