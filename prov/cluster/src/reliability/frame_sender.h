// Sends the frames of one flow in bursts. FrameSelector selects the frames and the path of each burst. The
// sender records each transmission in the send window, in the path (loss detector, pacer) and in the
// retransmission timer.
//
// Invariants: every transmission of a frame has its own number, larger than all earlier ones. So an
// acknowledgement always says which transmission it is for (RFC 9002). A frame that the link does not take
// counts as not sent. Such a frame stays queued, or in the queue of lost frames. The sender tries the link
// again after kRetryLink.
//
// Two kinds of frames may leave although the windows are full (docs/protocol.md 4.4): a frame that a tail
// loss probe or a timeout retransmits, and a zero window probe. A frame that is too long for the path leaves
// in parts, which together are one transmission. (If the link takes only some of the parts, the rest is the
// next transmission.) While the peer's session is unknown, a frame leaves without its segments, because the
// peer would not accept them and the frame might be too long. A frame in this form is named a call.
//
// The sender also sends the challenges of path validation, which have no sequence and are not retransmitted
// (docs/protocol.md 4.8, 4.9). A challenge over an IP path is as long as the longest frame that may leave
// over this path, because the path must be able to carry it. Only a challenge that announces a new address of
// this side is short.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/counters.h"
#include "base/environment.h"
#include "link/link.h"
#include "multipath/path_manager.h"
#include "multipath/path_validator.h"
#include "reliability/frame_size.h"
#include "reliability/handshake.h"
#include "reliability/outgoing_ack.h"
#include "reliability/retransmission_timer.h"
#include "reliability/send_queue.h"
#include "reliability/session_frame.h"

namespace cluster::reliability {

/// Selects which frames of one flow leave next, and on which path. First comes the frame that a tail loss
/// probe or a retransmission timeout retransmits. This frame leaves even if the windows are full. If there
/// are several paths, it prefers another path than in its last transmission. Lost frames follow, then new
/// ones. The frame sender sends the selection. If the link does not take all frames, the frame sender puts
/// the rest back.
class FrameSelector {
 public:
  FrameSelector(SendQueue& queue, const Handshake& handshake, const multipath::PathManager& paths)
      : queue_(queue), handshake_(handshake), paths_(paths) {}

  struct Pick {
    Sequence sequence;
    bool repeat = false;     ///< true if repeat() has named this frame
    bool from_lost = false;  ///< true if it was in the queue of lost frames

    bool retransmission() const { return repeat || from_lost; }
  };
  struct Selection {
    std::array<Pick, link::kBurstMax> picks;
    std::size_t count = 0;
    std::size_t path = 0;          ///< number of the path, which is an IP path
    bool frames_left = false;      ///< true if frames are left that the selection does not contain
    bool retransmissions = false;  ///< true if a frame of the selection is a retransmission
    /// True if an operation may complete when a frame of the selection is acknowledged or answered, or when a
    /// frame in flight is acknowledged.
    bool completion_awaited = false;

    bool single_new_frame() const { return count == 1 && !retransmissions; }
  };

  Selection select(Time now);
  /// Returns true if the peer should acknowledge the last frame of the selection at once.
  bool wants_ack(const Selection& selection) const;
  /// Called if the link did not take this frame. Makes select() select the frame again.
  void put_back(const Pick& pick);
  /// Makes the next selection contain this frame, even if the windows are full.
  void repeat(Sequence frame) { repeat_ = frame; }
  bool repeats() const { return repeat_.has_value(); }

 private:
  void select_new(Selection& selection, std::size_t limit);

  static constexpr std::size_t kSmallWindow =
      132;  ///< twice the number of frames after which a peer acknowledges unasked (outgoing_ack.h)

  SendQueue& queue_;
  const Handshake& handshake_;
  const multipath::PathManager& paths_;
  std::optional<Sequence> repeat_;
};

class FrameSender {
 public:
  FrameSender(SendQueue& queue, const Handshake& handshake, FrameSize& frame_size,
              multipath::PathManager& paths, RetransmissionTimer& timer, Counters& counters, Burst& burst);

  struct Outcome {
    Time now;  ///< when the last burst left
    AckIncluded ack = AckIncluded::none;
    bool sent_any = false;
    bool link_full = false;
  };
  /// Sends the frames that the windows allow to leave now. `clock`, unless null, gives the time at which each
  /// burst after the first leaves.
  Outcome send_bursts(Time now, Clock* clock, link::Link& link, OutgoingAck& ack);
  /// Returns true if neither a repeated frame nor a zero window probe is due, and if neither a full link nor
  /// the pacer holds frames back.
  bool ordinary() const {
    return !selector_.repeats() && !zero_window_probe_due_ && link_retry_at_ == kNever &&
           pacer_allows_at_ == kNever;
  }
  /// Sends the only queued frame, which must have a body. The caller must have filled in the acknowledgement
  /// in `numbers`. `flags`: kAwaited or kOnlyAnswers. Returns false if the link is full; the frame then stays
  /// queued.
  bool send_alone(Time now, link::Link& link, wire::LoneNumbers& numbers, std::uint8_t flags);
  /// Asks for an acknowledgement at once, because an operation waits for it or for the answer.
  static constexpr std::uint8_t kAwaited = wire::frame_flag::kSequenced | wire::frame_flag::kOrdered |
                                           wire::frame_flag::kAckNow | wire::frame_flag::kAcknowledges;
  static constexpr std::uint8_t kOnlyAnswers = wire::frame_flag::kSequenced | wire::frame_flag::kAcknowledges;
  /// Called instead of send_bursts() if only answers are left to send, and they may wait for the owed
  /// acknowledgement. Until the next turn, deadline() returns kNever, because the deadline of the
  /// AckScheduler ends the wait.
  Outcome skip_turn(Time now) {
    link_retry_at_ = pacer_allows_at_ = kNever;
    return {.now = now};
  }
  /// Sends an acknowledgement in a frame without data. Returns how much of `ack` the frame carries, or
  /// nothing if the link is full.
  std::optional<AckIncluded> send_ack(Time now, link::Link& link, const OutgoingAck& ack);
  /// Sends a frame with only our opening to the peer of the handshake `to`.
  void send_opening(const Handshake& to, const link::Path& path, link::Link& link, const OutgoingAck& ack);
  /// Sends several copies of a fin, because a fin is not retransmitted.
  void send_fin(link::Link& link, const OutgoingAck& ack);

  /// Sends all challenges that are due. Called after send_bursts(), with its outcome. `new_paths`: true if
  /// paths have joined in this turn.
  void send_challenges(const Outcome& sent, bool new_paths, multipath::PathChallenges& challenges,
                       link::Link& link);

  /// See FrameSelector::repeat().
  void repeat(Sequence frame) { selector_.repeat(frame); }
  /// Makes the next send_bursts() begin with a zero window probe.
  void request_zero_window_probe() { zero_window_probe_due_ = true; }

  /// Returns when to try a full link again or when the pacer allows more frames, whichever is earlier.
  Time deadline() const { return std::min(link_retry_at_, pacer_allows_at_); }
  TransmissionNumber last_transmission() const { return transmission_; }
  /// Returns true if this transmission of this frame may still be in flight.
  bool has_in_flight(Sequence sequence, TransmissionNumber transmission) const;

  std::uint64_t sent() const { return sent_; }
  std::uint64_t retransmitted() const { return retransmitted_; }

 private:
  void encode(const FrameSelector::Selection& selection, const FrameLimits& limits, const OutgoingAck& ack);
  bool send_burst(Time now, link::Link& link, const FrameSelector::Selection& selection,
                  const OutgoingAck& ack, AckIncluded& included);
  bool send_singly(Time now, link::Link& link, const FrameSelector::Selection& selection,
                   const OutgoingAck& ack, AckIncluded& included);
  bool send_in_parts(Time now, link::Link& link, const FrameSelector::Selection& selection,
                     const OutgoingAck& ack, AckIncluded& included);
  FrameLimits limits_of(const link::Link& link) const { return {frame_size_.frame_max(), link.integrity()}; }
  /// Returns the size of the longest frame for this path.
  std::size_t frame_max_on(std::size_t path) const { return frame_size_.frame_max_on(paths_[path]); }
  bool too_long_for_path(const FrameSelector::Selection& selection) const;
  std::size_t size_of(Sequence s) const;
  void count_sent(std::size_t frames) {
    counters_.frames_sent += frames;
    sent_ += frames;
  }
  bool meets_black_hole(Time now, const FrameSelector::Selection& selection);
  void note_sent(Time now, const FrameSelector::Selection& selection, std::size_t taken, std::size_t path);
  void note_retransmission(Time now, Sequence s, std::size_t path);
  std::optional<AckIncluded> send_bare(wire::FrameKind kind, const Handshake& to, const link::Path& path,
                                       link::Link& link, const OutgoingAck& ack);
  void send_challenge(Time now, const multipath::PathManager::Challenge& challenge, std::uint64_t data,
                      wire::FrameKind kind, std::size_t size, link::Link& link);
  void send_zero_window_probe(Time now, link::Link& link, const OutgoingAck& ack);

  /// A frame that leaves in parts. The link has taken the first `left` parts, but not yet all.
  struct CutFrame {
    Sequence sequence{};
    /// The most bytes of a part, its PartBlock included, but not its header and opening. If this size has
    /// changed, the frame is cut anew, and all of its parts leave again.
    std::size_t part_max = 0;
    std::size_t left = 0;  ///< number of parts that the link has taken
  };

  static constexpr std::size_t kFinCopies = 3;
  /// This side must have sent this many frames to a peer before it challenges an EtherType path.
  static constexpr std::uint64_t kFramesBeforeEthertype = 16;
  static constexpr Duration kRetryLink = 20us;

  SendQueue& queue_;
  const Handshake& handshake_;
  FrameSize& frame_size_;
  multipath::PathManager& paths_;
  FrameSelector selector_;
  RetransmissionTimer& timer_;
  Counters& counters_;
  Burst& burst_;
  FrameBody scratch_{wire::kSegmentHeaderMax};  ///< used for frames without segments, or with only padding
  TransmissionNumber transmission_;             ///< number of the last transmission
  bool zero_window_probe_due_ = false;
  /// Transmission number of the last zero window probe.
  std::optional<TransmissionNumber> zero_window_probe_;
  Time link_retry_at_ = kNever;  ///< when to try a full link again
  Time pacer_allows_at_ = kNever;
  CutFrame cut_;
  std::uint64_t sent_ = 0;
  std::uint64_t retransmitted_ = 0;
};

}  // namespace cluster::reliability
