// Loss recovery over all paths of a flow: which path a sent frame, an acknowledgement or a timeout concerns.
// What it means for that path is path_recovery.h.
//
// Overtaking counts only on one path; frames of different paths arrive in any order and prove nothing against
// each other. But a path on which nothing has arrived for a retransmission timeout, while something that was
// sent later on another path has, has failed: everything in flight on it is lost at once, so no frame waits
// for a path. (An IP path that is the only one never fails.) An EtherType path fails with its first loss.
//
// The peer reports how many retransmissions were spurious, not which: they are taken to be the last ones sent
// of those that may have arrived, and credited to the paths on which those frames had been sent before. What a
// tail loss probe or a timeout repeated had not been held for lost, so it does not widen the reorder window (as
// Linux leaves the DSACK of a tail loss probe out).
//
// How long the peer may acknowledge nothing (retransmission_timer.h) is measured by the slowest path on which
// something is in flight, and while one of those has not been measured, as if none had been.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/sequence.h"
#include "base/units.h"
#include "multipath/path_scheduler.h"
#include "multipath/path_state.h"

namespace cluster::multipath {

class MultipathRecovery {
 public:
  MultipathRecovery(PathList& paths, const PathScheduler& scheduler) : paths_(paths), scheduler_(scheduler) {}

  /// The frame whose latest transmission, on this path, is `last` is sent again as `next`: call before
  /// PathRecovery::on_sent(). `probe`: it was not found lost, but repeated by a tail loss probe or timeout.
  void on_retransmit(std::size_t path, TransmissionNumber last, TransmissionNumber next, bool probe);
  /// The peer will report a spurious retransmission, which it was not.
  void on_zero_window_probe(TransmissionNumber number) { remember({number, kNoPath, true}); }

  /// After PathRecovery::on_frame_acked() of all frames that are acknowledged for the first time.
  void on_ack(Time now, const AckInfo& ack);

  /// Appends the frames that are lost by now. Losing the PMTU probe says nothing of congestion (RFC 8899 3).
  void detect_losses(Time now, std::vector<Sequence>& lost, std::optional<Sequence> pmtu_probe = {});
  /// The peer has dropped all that is in flight, which says nothing of the paths: appends it.
  void take_back(std::vector<Sequence>& frames) {
    for (const auto& path : paths_) path->recovery.take_back(frames);
  }
  Time deadline() const;
  /// A frame that was sent on this path at `sent_at` was not acknowledged in time, and goes again.
  void on_unanswered(Time now, std::size_t path, Time sent_at);
  /// Nothing at all was acknowledged for several retransmission timeouts.
  void on_persistent_timeout();
  /// Something did not arrive, or its acknowledgement, and it may have been on any EtherType path.
  void suspect_ethertype_paths(Time now);
  /// The reply time that the retransmission timer goes by.
  const RttEstimator& reply_time() const;
  /// True if this transmission of the frame is remembered by its path.
  bool remembers(Sequence sequence, TransmissionNumber transmission) const;

  /// Frames of other paths arrive for at least so long before a path has failed: less may be due to a
  /// scheduler.
  static constexpr Duration kPathFailureMin = 2ms;

 private:
  static constexpr std::uint8_t kNoPath = 0xff;

  struct Retransmission {
    TransmissionNumber number;
    std::uint8_t before = 0;  ///< path on which the frame had been sent before; kNoPath: a zero window probe
    bool probe = false;
    bool spurious = false;
  };

  static constexpr std::size_t kRetransmissionsKept = 64;

  void credit_spurious(Time now, const AckInfo& ack);
  void credit_spurious(Time now, std::size_t path, std::size_t frames, bool probes);
  void remember(const Retransmission& one);
  Time fails_at(const PathState& path) const;
  static void forget_mac(PathState& path);
  void fail(Time now, PathState& path, std::vector<Sequence>& lost);

  PathList& paths_;
  const PathScheduler& scheduler_;
  std::optional<TransmissionNumber> largest_acked_;
  std::vector<Retransmission> retransmissions_;  ///< the last ones; few, so that an idle flow stays small
};

}  // namespace cluster::multipath
