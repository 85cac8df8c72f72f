// Sends the frames of one flow, in bursts, each with the frames and the path that FrameSelector names. What
// leaves is noted where it matters later: send window, path (loss detector, pacer), retransmission timer.
//
// Invariants: every sending of a frame has a transmission number of its own, larger than all before (RFC
// 9002: so acknowledgements of retransmissions are not ambiguous). A frame that the link does not take was
// not sent: it stays queued or lost, and the link is tried again after kRetryLink.
//
// Two frames may leave although the windows are full: the one that a tail loss probe or a retransmission
// timeout repeats, and a zero window probe. The latter leaves when the peer has no space for a message, holds back its
// acknowledgement and says nothing (RFC 9293 3.8.6.1).
//
// A frame that has become too long for the path leaves in parts, which together are one sending. A frame that calls a peer whose
// session is not known leaves without its segments: the peer would not take them, and the frame might be too long.
//
// Challenges of path validation (RFC 9000 section 8.2) leave beside the flow's own frames; the path decides when one is due
// (multipath/path_validator.h). Over a path that has never worked this side sends a path_challenge,
// which the peer's engine answers if it names the session. Over a path that worked before it sends a keep_alive of the same
// length, which the peer's responder answers even while the engine computes. Over an EtherType path it sends
// path_challenges only, and the engine answers over the same path, which shows that both directions work. A challenge over
// an IP path is as long as the longest frame of the flow, because the path has to carry such frames. Challenges have
// no sequence and are not retransmitted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/counters.h"
#include "base/environment.h"
#include "link/link.h"
#include "multipath/path_challenges.h"
#include "multipath/path_manager.h"
#include "reliability/frame_size.h"
#include "reliability/handshake.h"
#include "reliability/outgoing_ack.h"
#include "reliability/retransmission_timer.h"
#include "reliability/send_queue.h"
#include "reliability/session_frame.h"

namespace cluster::reliability {

/// Which frames of one flow leave next, and by which path. First comes the frame that a tail loss probe or a
/// retransmission timeout repeats (whatever the windows allow), then lost frames, then new ones. Selecting sends
/// nothing; the frame sender sends, and gives back what its link did not take.
///
/// A frame that is repeated after a timeout leaves on another path than before, if there is one.
class FrameSelector {
 public:
  FrameSelector(SendQueue& queue, const Handshake& handshake, const multipath::PathManager& paths)
      : queue_(queue), handshake_(handshake), paths_(paths) {}

  struct Pick {
    Sequence sequence;
    bool repeat = false;     ///< repeat() asked for it
    bool from_lost = false;  ///< it was taken out of the queue of lost frames

    bool retransmission() const { return repeat || from_lost; }
  };
  /// What leaves with one call of the link.
  struct Selection {
    std::array<Pick, link::kBurstMax> picks;
    std::size_t count = 0;
    std::size_t path = 0;             ///< an IP path
    bool frames_left = false;         ///< something is left that has to wait
    bool retransmissions = false;     ///< a frame in it is retransmitted
    bool completion_awaited = false;  ///< a token waits for the acknowledgement of a frame in it or in flight

    bool single_new_frame() const { return count == 1 && !retransmissions; }
  };

  Selection select(Time now);
  /// True if the peer should acknowledge the last frame of the selection at once.
  bool wants_ack(const Selection& selection) const;
  /// The link did not take this frame: it is selected again.
  void put_back(const Pick& pick);
  /// The frame is selected next, whatever the windows allow.
  void repeat(Sequence frame) { repeat_ = frame; }

 private:
  void select_new(Selection& selection, std::size_t limit);

  static constexpr std::size_t kSmallWindow =
      132;  ///< twice what is acknowledged by count (reliability/outgoing_ack.h)

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
  /// Sends what the windows allow now. Each burst after the first is dated by `clock`, unless that is null.
  Outcome send_bursts(Time now, Clock* clock, link::Link& link, OutgoingAck& ack);
  /// Sends nothing: what there is may wait, and another turn is asked for by the acknowledgement's deadline.
  Outcome skip_turn(Time now) {
    link_retry_at_ = pacer_allows_at_ = kNever;
    return {.now = now};
  }
  /// Sends nothing but an acknowledgement; returns what the frame carries, or nothing if the link is full.
  std::optional<AckIncluded> send_ack(Time now, link::Link& link, const OutgoingAck& ack);
  /// Sends our opening, and nothing else, to the peer of that handshake.
  void send_opening(const Handshake& to, const link::Path& path, link::Link& link, const OutgoingAck& ack);
  /// Says goodbye, in several copies because a fin is not retransmitted.
  void send_fin(link::Link& link, const OutgoingAck& ack);

  /// Sends the challenges that are due, after send_bursts(). `new_paths`: some have joined in this turn.
  void send_challenges(const Outcome& sent, bool new_paths, multipath::PathChallenges& challenges,
                       link::Link& link);

  /// The frame goes out next, whatever the windows allow.
  void repeat(Sequence frame) { selector_.repeat(frame); }
  void request_zero_window_probe() { zero_window_probe_due_ = true; }

  /// When the link is tried again or the pacer allows more.
  Time deadline() const { return std::min(link_retry_at_, pacer_allows_at_); }
  TransmissionNumber last_transmission() const { return transmission_; }
  /// True if this sending of this frame may still be on its way.
  bool has_in_flight(Sequence sequence, TransmissionNumber transmission) const;

  std::uint64_t sent() const { return sent_; }
  std::uint64_t retransmitted() const { return retransmitted_; }

 private:
  bool send_call(Time now, link::Link& link, const FrameSelector::Selection& selection,
                 const OutgoingAck& ack, AckIncluded& included);
  bool send_burst(Time now, link::Link& link, const FrameSelector::Selection& selection,
                  const OutgoingAck& ack, AckIncluded& included);
  bool send_singly(Time now, link::Link& link, const FrameSelector::Selection& selection,
                   const OutgoingAck& ack, AckIncluded& included);
  bool send_in_parts(Time now, link::Link& link, const FrameSelector::Selection& selection,
                     const OutgoingAck& ack, AckIncluded& included);
  FrameLimits limits_of(const link::Link& link) const { return {frame_size_.frame_max(), link.integrity()}; }
  std::size_t size_of(Sequence s) const;
  bool meets_black_hole(const FrameSelector::Selection& selection) const;
  void note_sent(Time now, const FrameSelector::Selection& selection, std::size_t taken, std::size_t path);
  void note_retransmission(Time now, Sequence s, std::size_t path);
  std::optional<AckIncluded> send_bare(wire::FrameKind kind, const Handshake& to, const link::Path& path,
                                       link::Link& link, const OutgoingAck& ack);
  void send_challenge(Time now, const multipath::PathManager::Challenge& challenge, std::uint64_t data,
                      wire::FrameKind kind, std::size_t size, link::Link& link);
  void send_zero_window_probe(Time now, link::Link& link, const OutgoingAck& ack);

  /// A frame of which the link has taken the first parts only.
  struct CutFrame {
    Sequence sequence{};
    std::size_t part_max = 0;  ///< bytes, block included; another cut has other parts
    std::size_t left = 0;      ///< parts that the link has taken
  };

  static constexpr std::size_t kFinCopies = 3;
  /// Frames to a peer before its EtherType path is worth a challenge.
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
  FrameBody empty_{wire::kSegmentHeaderMax};  ///< for frames without segments, or with nothing but padding
  TransmissionNumber transmission_;           ///< number of the last sending
  bool zero_window_probe_due_ = false;
  std::optional<TransmissionNumber> zero_window_probe_;  ///< transmission number of the last one
  Time link_retry_at_ = kNever;                          ///< the link was full
  Time pacer_allows_at_ = kNever;
  CutFrame cut_;
  std::uint64_t sent_ = 0;
  std::uint64_t retransmitted_ = 0;
};

}  // namespace cluster::reliability
