// Loss recovery over all paths of a flow: which path a sent frame, an acknowledgement or a timeout concerns.
// What it means for that path is path_recovery.h.
//
// Overtaking counts only on one path; frames of different paths arrive in any order and prove nothing against each
// other. But a path fails if nothing arrives on it for a retransmission timeout, although something that was sent
// later on another path has arrived. Then everything in flight on it is lost at once, so no frame waits for a path.
// (An IP path that is the only one never fails.) An EtherType path fails with its first loss.
//
// The peer reports how many retransmissions were spurious, but not which. The guess: the last ones sent of those that
// may have arrived. They are credited to the paths that carried their frames before. A frame that a tail loss probe
// or a timeout retransmitted was not declared lost before, so it does not widen the reorder window (as Linux ignores
// the DSACK of a tail loss probe).
//
// The retransmission timer (retransmission_timer.h) goes by the slowest path on which something is in flight. If one
// of these was never measured, the timer has its initial value.
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

  /// The frame whose latest transmission, on this path, is `last` is retransmitted as `next`: call before
  /// PathRecovery::on_sent(). `probe`: it was not declared lost; a tail loss probe or a timeout retransmits it.
  void on_retransmit(std::size_t path, TransmissionNumber last, TransmissionNumber next, bool probe);
  /// The peer will report this frame as a spurious retransmission, but it is none.
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
  /// A frame that was sent on this path at `sent_at` was not acknowledged in time, and is retransmitted.
  void on_unanswered(Time now, std::size_t path, Time sent_at);
  /// Nothing at all was acknowledged for several retransmission timeouts.
  void on_persistent_timeout();
  /// A frame or its acknowledgement was lost, and any EtherType path may have lost it.
  void suspect_ethertype_paths(Time now);
  /// The reply time that the retransmission timer goes by.
  const RttEstimator& reply_time() const;
  /// True if this transmission of the frame is remembered by its path.
  bool remembers(Sequence sequence, TransmissionNumber transmission) const;

  /// A path fails only after frames of other paths have arrived for this long: a scheduler can cause shorter delays.
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
