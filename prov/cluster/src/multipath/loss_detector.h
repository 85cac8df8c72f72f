// Detects lost frames of one path, as in RACK (RFC 8985; docs/protocol.md 4.3). As in RFC 9002, the peer
// names the largest transmission that has arrived. Therefore this side never mistakes a retransmission for
// the original transmission. A frame counts as overtaken if its latest transmission on this path is older
// than the named one, and the acknowledgement says that the frame has not arrived. An overtaken frame is
// declared lost once it is overdue (loss_delay()).
//
// Transmissions are stored in the order in which they were sent. A transmission is settled when its frame is
// acknowledged, declared lost or retransmitted. Until then it is in flight. Settled transmissions that are
// older than the newest arrival are removed from the front. Therefore each transmission is visited a constant
// number of times. From the list, detect() also learns how many transmissions of this path have overtaken a
// frame. Transmissions on other paths are no evidence of a loss.
//
// Invariants: in_flight() is the number of transmissions that are not settled; transmission numbers ascend; a
// frame has at most one transmission in flight, over all paths.
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

/// A frame that was acknowledged for the first time, and its latest transmission. If `count` is above 1, the
/// struct stands for this many frames, of which `sequence` is the first. Each of them was sent once, and
/// their sequences and transmission numbers are consecutive.
struct AckedFrame {
  Sequence sequence{};
  TransmissionNumber transmission{};
  Time sent_at{};
  bool sent_once = false;  ///< if true, it is certain which transmission has arrived
  std::size_t count = 1;
  Time last_sent_at = sent_at;  ///< when the last of the frames was sent

  /// Adds `next` to these frames if one struct can stand for all of them. Otherwise returns false.
  bool join(const AckedFrame& next) {
    const auto ahead = static_cast<std::int32_t>(count);
    if (!sent_once || !next.sent_once || next.sequence - sequence != ahead ||
        next.transmission - transmission != ahead) {
      return false;
    }
    count += next.count;
    last_sent_at = next.last_sent_at;
    return true;
  }
};

class LossDetector {
 public:
  /// Records that `count` frames were sent. Their sequences and transmission numbers are consecutive and
  /// begin with the given ones.
  void on_sent(Sequence sequence, TransmissionNumber transmission, Time now, std::size_t count = 1) {
    const std::int32_t ahead = transmission - largest_acked_;
    const bool ordinary = count == 1 && ahead > 0 && ahead <= kIdleDistanceMax &&
                          transmissions_.free() != 0 &&
                          (transmissions_.empty() || transmissions_.back().sequence != sequence);
    if (!ordinary) [[unlikely]]
      return on_unusual_sent(sequence, transmission, now, count);
    ++in_flight_;
    transmissions_.push_within() = {transmission, sequence, now};
  }
  void on_superseded(TransmissionNumber transmission);
  /// Must be called before on_largest_acked() for the same acknowledgement.
  void on_acked(const AckedFrame& frame, const RttEstimator& reply_time);
  /// Processes an acknowledgement that names `largest` as arrived. For each frame before `known_end`, the
  /// acknowledgement says whether the frame has arrived. Returns the time at which `largest` was sent.
  /// Returns nothing if its arrival was already known, or if this class has no record of the transmission.
  std::optional<Time> on_largest_acked(TransmissionNumber largest, Sequence known_end);
  /// Processes an acknowledgement that names no transmission of this path. For `known_end`, see
  /// on_largest_acked().
  void set_known_end(Sequence known_end) { known_end_ = known_end; }
  void on_spurious_loss(Time now, const RttEstimator& reply_time);

  /// Declares overdue frames lost, appends them to `lost`, and sets deadline() for the next frame that may be
  /// lost.
  void detect(Time now, const RttEstimator& reply_time, std::vector<Sequence>& lost);
  /// Returns when the next frame becomes overdue, or kNever if no frame in flight has been overtaken.
  Time deadline() const { return deadline_; }
  /// Removes all transmissions, and appends the frames in flight on the path to `lost`.
  void mark_all_lost(std::vector<Sequence>& lost);

  std::size_t in_flight() const { return in_flight_; }
  TransmissionNumber largest_acked() const { return largest_acked_; }
  bool knows(TransmissionNumber transmission) const { return find(transmission).has_value(); }
  bool remembers(Sequence sequence, TransmissionNumber transmission) const;
  Duration reorder_window(const RttEstimator& reply_time) const;
  std::size_t remembered() const { return transmissions_.size(); }
  std::size_t footprint() const { return transmissions_.footprint(); }

 private:
  void on_unusual_sent(Sequence sequence, TransmissionNumber transmission, Time now, std::size_t count);
  struct Transmission {
    TransmissionNumber number;
    Sequence sequence;
    Time sent_at{};
    bool settled = false;
  };

  /// The oldest settled transmissions are dropped while the list has more transmissions than this number plus
  /// two for each transmission in flight.
  static constexpr std::size_t kTransmissionsKept = 64;
  /// When this many transmissions have overtaken a frame, RFC 9002 6.1.1 declares the frame lost, and RFC
  /// 8985 6.2 sets the reorder window to zero. Here, a frame waits one reply time longer if at most this many
  /// transmissions of this path have overtaken it.
  static constexpr std::size_t kPacketThreshold = 3;
  static constexpr std::int32_t kIdleDistanceMax = 1 << 30;  ///< comparisons fail at twice this distance
  static constexpr int kReorderWindowMax = 4;                ///< in smoothed reply times
  /// The window shrinks by 1/32 per smoothed reply time, but not right after a spurious loss.
  static constexpr int kReorderWindowDecay = 32;

  /// Returns the index of the first record that is not older than this transmission. With one path, numbers
  /// are consecutive.
  std::size_t position(TransmissionNumber number) const {
    if (transmissions_.empty()) return 0;
    const std::int32_t consecutive = number - transmissions_.front().number;
    if (consecutive <= 0) return 0;
    const auto index = static_cast<std::size_t>(consecutive);
    return index < transmissions_.size() && transmissions_[index].number == number ? index : search(number);
  }
  /// Does the same as position() if other paths have used some of the numbers.
  std::size_t search(TransmissionNumber number) const;
  std::optional<std::size_t> find(TransmissionNumber number) const;
  void settle(Transmission& record);
  Duration loss_delay(std::size_t overtaken_by, const RttEstimator& reply_time) const;
  void shrink(Time now, const RttEstimator& reply_time);

  RingQueue<Transmission> transmissions_;
  std::size_t in_flight_ = 0;
  bool any_acked_ = false;
  TransmissionNumber largest_acked_;  ///< largest transmission known to have arrived
  Time largest_sent_at_{};
  Sequence known_end_;   ///< the last acknowledgement said which frames before this one have arrived
  Duration widened_{0};  ///< the reorder window before it is clamped
  Time shrink_at_{};
  Time widen_at_{};  ///< before this time, further spurious losses do not widen the window again
  Time deadline_ = kNever;
};

}  // namespace cluster::multipath
