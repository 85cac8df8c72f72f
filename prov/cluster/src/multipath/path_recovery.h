// Loss recovery and congestion control of one path (RFC 9002, for each path separately as in Multipath QUIC).
// PathRecovery measures round trips, detects lost frames, limits the number of frames in flight, and sets the
// pace. It measures and smooths two durations (docs/protocol.md 4.2):
//
//   network round trip   the time on the path, without the time that frames lie unread at either end.
//   reply time           the time until this side knows that a frame has arrived, including all waits.
//
// An acknowledgement names the largest transmission that has arrived on any path. A sample for this path is
// exact if that transmission was sent on this path. On a slow path, a frame is hardly ever the newest of all
// paths. If the frame is not the newest, its sample ends only when the peer acknowledges the frame. This
// sample includes the time for which the peer delayed the acknowledgement.
//
// Invariants: in_flight() counts the frames whose latest transmission is on this path and which are neither
// acknowledged nor declared lost. on_frame_acked() is called before on_ack() for the same acknowledgement.
// There are no timers here. losses().deadline() and fails_at() say when the caller has to check again.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/sequence.h"
#include "base/units.h"
#include "multipath/congestion_controller.h"
#include "multipath/loss_detector.h"
#include "multipath/pacer.h"
#include "multipath/rtt_estimator.h"

namespace cluster::multipath {

/// What one acknowledgement says, apart from the frames that it acknowledges.
struct AckInfo {
  TransmissionNumber largest_acked;  ///< largest transmission that has arrived
  Sequence known_end;                ///< it says for each frame before this one whether the frame arrived
  TransmissionNumber next;           ///< number of the next transmission
  Time arrived;  ///< when the acknowledgement reached this node, perhaps long before it was read
  std::optional<Duration> delay;  ///< from the arrival of largest_acked to the acknowledgement, if known
  std::size_t spurious = 0;       ///< spurious retransmissions that the peer reports for the first time
};

class PathRecovery {
 public:
  explicit PathRecovery(std::size_t window_max) : congestion_(window_max) {}

  std::size_t allowance(Time now) const;
  /// Returns true if the congestion window allows one more frame. The pacer may still forbid the frame.
  bool has_window() const { return losses_.in_flight() < congestion_.window(); }
  /// Records that `count` frames were sent. Their sequences and transmission numbers are consecutive and
  /// begin with the given ones.
  void on_sent(Time now, Sequence sequence, TransmissionNumber transmission, std::size_t count = 1) {
    losses_.on_sent(sequence, transmission, now, count);
    if (losses_.in_flight() == count) {
      arrived_at_ = now;
      passed_at_ = kNever;
    }
    sent_at_ = now;
    pacer_.on_sent(now, count);
  }
  void on_retransmit(TransmissionNumber transmission);

  void on_frame_acked(const AckedFrame& frame);
  struct Arrival {
    /// The time at which the largest transmission that has arrived on this path was sent. Empty unless its
    /// arrival is new.
    std::optional<Time> largest_acked_sent_at;
    Time last_acked_sent_at{};  ///< when the last of the newly acknowledged frames was sent
  };
  struct AckContext {
    bool sole;      ///< there is no other path
    bool several;   ///< there are several IP paths
    bool outdated;  ///< an acknowledgement with a larger largest_acked arrived earlier
  };
  Arrival on_ack(Time now, const AckInfo& ack, const AckContext& context);
  /// Records that `frames` retransmissions of this path's frames were spurious. `probes`: the frames had not
  /// been declared lost.
  void on_spurious_retransmits(Time now, std::size_t frames, bool probes);
  void on_passed(Time now, Time sent_at);

  /// Declares overdue frames lost, appends them to `lost`, and returns their number. The loss of the PMTU
  /// probe does not count as congestion.
  std::size_t detect_losses(Time now, std::vector<Sequence>& lost, std::optional<Sequence> pmtu_probe);
  /// Appends all frames in flight on the path to `frames`, so that they are retransmitted.
  void take_back(std::vector<Sequence>& frames);
  void on_persistent_timeout();
  /// Returns when the path fails. Returns kNever unless a later frame of another path is known to have
  /// arrived. The path does not fail before the time `least` has passed since its last arrival.
  Time fails_at(Duration least) const;

  /// Copies the round trips of another path to the same peer, unless this path has its own.
  void copy_rtt(const PathRecovery& other);
  void sample(Time now, Duration reply, std::optional<Duration> network);

  const RttEstimator& network_rtt() const { return network_rtt_; }
  const RttEstimator& reply_time() const { return reply_time_; }
  const LossDetector& losses() const { return losses_; }
  const CongestionController& congestion() const { return congestion_; }
  /// Returns when the pacer allows kQuantum frames, or kNever if it allows them now.
  Time paced_until(Time now) const;
  Time sent_at() const { return sent_at_; }
  Time arrived_at() const { return arrived_at_; }

  /// Samples older than this are stale.
  static constexpr Duration kRttStaleAfter = 100ms;

 private:
  struct Acked {
    std::size_t frames = 0;
    std::size_t in_flight = 0;                  ///< how many of these frames were in flight
    std::optional<TransmissionNumber> largest;  ///< largest transmission that has certainly arrived
    Time largest_sent_at{};
  };
  struct Samples {
    std::optional<Duration> reply;
    std::optional<Duration> network;
  };

  void update_pace();
  Samples measure(Time now, const AckInfo& ack, std::optional<Time> sent_at, bool exact, bool several);

  static constexpr std::size_t kBurstMin = 32;  ///< the same as the initial window
  static constexpr std::size_t kQuantum = 8;

  RttEstimator network_rtt_;
  RttEstimator reply_time_;
  LossDetector losses_;
  CongestionController congestion_;
  Pacer pacer_{Duration::zero(), kBurstMin};
  Acked acked_;
  Time sent_at_{};           ///< when the last frame left on the path
  Time sampled_at_{};        ///< when the reply time was last sampled
  Time measured_at_{};       ///< when the last exact sample was taken
  Time arrived_at_{};        ///< when this side last learnt of an arrival, or began to wait for one
  Time passed_at_ = kNever;  ///< when a later frame of another path was found to have arrived
};

}  // namespace cluster::multipath
