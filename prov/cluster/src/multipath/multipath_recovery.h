// Loss recovery over all paths of a flow: which path a sent frame, an acknowledgement or a timeout concerns.
// What it means for that path is path_recovery.h.
//
// Overtaking counts only on one path; frames of different paths arrive in any order and prove nothing against
// each other. But a path on which nothing has arrived for a retransmission timeout, while something that was
// sent later on another path has, has failed: everything in flight on it is lost at once, so no frame waits
// for a path. (An IP path that is the only one never fails.) An EtherType path fails with its first loss.
//
// The peer reports how many retransmissions were spurious, not which: they are taken to be the last ones sent
// of those that may have arrived, and credited to the paths on which those frames had been sent before.
//
// How long the peer may acknowledge nothing (retransmission_timer.h) is measured by the slowest path on which
// something is in flight, and while one of those has not been measured, as if none had been.
#pragma once

#include <cstddef>
#include <vector>

#include "base/ring_queue.h"
#include "multipath/path_log.h"
#include "multipath/path_scheduler.h"
#include "multipath/path_state.h"

namespace cluster::multipath {

class MultipathRecovery {
 public:
  MultipathRecovery(PathList& paths, const PathScheduler& scheduler, const PathLog& log)
      : paths_(paths), scheduler_(scheduler), log_(log) {}

  void on_sent(Time now, std::size_t path, Sequence sequence, TransmissionNumber transmission) {
    paths_[path].recovery.on_sent(now, sequence, transmission);
  }
  /// The frame whose latest transmission, on this path, is `last` is sent again as `next`: call before
  /// on_sent().
  void on_retransmit(std::size_t path, TransmissionNumber last, TransmissionNumber next);

  /// For each frame that is acknowledged for the first time; then on_ack().
  void on_frame_acked(std::size_t path, const AckedFrame& frame) {
    paths_[path].recovery.on_frame_acked(frame);
  }
  void on_ack(Time now, const AckInfo& ack);

  /// Appends the frames that are lost by now.
  void detect_losses(Time now, std::vector<Sequence>& lost);
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
  struct Retransmission {
    TransmissionNumber number;
    std::size_t before = 0;  ///< the path on which the frame had been sent before
    bool spurious = false;
  };

  static constexpr std::size_t kRetransmissionsKept = 64;

  void credit_spurious(Time now, const AckInfo& ack);
  void credit_spurious(Time now, std::size_t path, std::size_t frames);
  Time fails_at(const PathState& path) const;
  void fail(Time now, PathState& path, std::vector<Sequence>& lost);

  PathList& paths_;
  const PathScheduler& scheduler_;
  const PathLog& log_;
  bool any_ack_ = false;
  TransmissionNumber largest_acked_;
  RingQueue<Retransmission> retransmissions_;  ///< the last ones, while there are several paths
};

}  // namespace cluster::multipath
