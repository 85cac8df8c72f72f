// Loss recovery and congestion control of one path (RFC 9002, each path by itself as in Multipath QUIC): what its round trips are, which
// frames on it are lost, how many may be in flight and how fast they leave. Two times are measured and smoothed (docs/protocol.md 4.2):
//
//   network round trip   what the path takes; the time that frames lay unread at either end is not in it
//   reply time           until it is known here that a frame has arrived, whatever that waited for
//
// An acknowledgement names the largest transmission that has arrived on any path. A sample is exact if that
// is the largest of this path too; the frames of a slow path are never the newest of all, so they are
// measured by the time of the acknowledgement, which includes what the peer took to send it.
//
// Invariants: in_flight() counts the frames whose latest transmission is on this path and neither
// acknowledged nor lost; on_frame_acked() comes before on_ack() of the same acknowledgement. No timers of its
// own: losses().deadline() and fails_at() say when to look again.
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

/// What one acknowledgement says beside the frames that it acknowledges.
struct AckInfo {
  TransmissionNumber largest_acked;  ///< transmission that has arrived
  Sequence known_end;                ///< it covers the frames before this one
  TransmissionNumber next;           ///< number of the next transmission
  Time arrived;                      ///< at this node, perhaps long before it was read
  std::optional<Duration>
      delay;                 ///< between the arrival of largest_acked and the acknowledgement, unless unknown
  std::size_t spurious = 0;  ///< retransmissions, since the last acknowledgement
};

class PathRecovery {
 public:
  explicit PathRecovery(std::size_t window_max) : congestion_(window_max) {}

  std::size_t allowance(Time now) const;
  /// True if the congestion window allows one more, whatever the pacer says.
  bool has_window() const { return losses_.in_flight() < congestion_.window(); }
  /// `count` frames have left, with sequences and transmission numbers from these on.
  void on_sent(Time now, Sequence sequence, TransmissionNumber transmission, std::size_t count = 1);
  void on_retransmit(TransmissionNumber transmission);

  void on_frame_acked(const AckedFrame& frame);
  struct Arrival {
    /// If a newer transmission of this path than ever before has arrived: when it was sent.
    std::optional<Time> largest_acked_sent_at;
    Time last_acked_sent_at{};  ///< of the frames newly acknowledged, when the one sent last had left
  };
  struct AckContext {
    bool sole;      ///< there is no other path
    bool several;   ///< there are several IP paths
    bool outdated;  ///< an acknowledgement with a larger largest_acked came before
  };
  Arrival on_ack(Time now, const AckInfo& ack, const AckContext& context);
  /// So many retransmissions of its frames were spurious. `probes`: the frames had not been declared lost.
  void on_spurious_retransmits(Time now, std::size_t frames, bool probes);
  void on_passed(Time now, Time sent_at);

  /// Appends the frames that are lost by now; returns how many. The PMTU probe does not count as congestion.
  std::size_t detect_losses(Time now, std::vector<Sequence>& lost, std::optional<Sequence> pmtu_probe);
  /// Appends everything that is in flight on it, to be retransmitted.
  void take_back(std::vector<Sequence>& frames);
  void on_persistent_timeout();
  /// kNever while nothing speaks against the path. `least`: it does not fail sooner after the last arrival.
  Time fails_at(Duration least) const;

  /// A path to the same peer that has never been measured starts with what is known of a similar one.
  void copy_rtt(const PathRecovery& other);
  void sample(Time now, Duration reply, std::optional<Duration> network);

  const RttEstimator& network_rtt() const { return network_rtt_; }
  const RttEstimator& reply_time() const { return reply_time_; }
  const LossDetector& losses() const { return losses_; }
  const CongestionController& congestion() const { return congestion_; }
  /// When the pacer lets enough frames for a turn leave; kNever if it does now.
  Time paced_until(Time now) const;
  Time sent_at() const { return sent_at_; }
  Time arrived_at() const { return arrived_at_; }

  /// What was measured so long ago is measured again.
  static constexpr Duration kRttStaleAfter = 100ms;

 private:
  struct Acked {
    std::size_t frames = 0;
    std::size_t in_flight = 0;                  ///< those that were
    std::optional<TransmissionNumber> largest;  ///< transmission that has arrived for certain
    Time largest_sent_at{};
  };
  struct Samples {
    std::optional<Duration> reply;
    std::optional<Duration> network;
  };

  void update_pace();
  Samples measure(Time now, const AckInfo& ack, std::optional<Time> sent_at, bool exact, bool several);

  static constexpr std::size_t kBurstMin = 32;  ///< a first window
  static constexpr std::size_t kQuantum = 8;

  RttEstimator network_rtt_;
  RttEstimator reply_time_;
  LossDetector losses_;
  CongestionController congestion_;
  Pacer pacer_{Duration::zero(), kBurstMin};
  Acked acked_;
  Time sent_at_{};      ///< the last frame that left on it
  Time sampled_at_{};   ///< the last sample of its reply time...
  Time measured_at_{};  ///< ...and the last exact one
  Time arrived_at_{};   ///< when something on it was last known to have arrived, or began to be awaited
  Time passed_at_ =
      kNever;  ///< since when a frame that was sent later on another path is known to have arrived
};

}  // namespace cluster::multipath
