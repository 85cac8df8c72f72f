// A flow: everything between this endpoint and one peer over the network. Numbered frames go out through a
// window, are acknowledged by ranges, and only what is missing travels again.
//
// The flow composes objects that own their state, and contains no arithmetic of its own:
//   handshake       whose session this is, and what still has to be said to open it
//   frame size      how long frames may be: what both links take, and the path between has shown to carry
//   send queue      the carrier that the protocol posts to: packs segments into frames, keeps them until acked
//   frame sender    which frames leave now, and on which path
//   ack processor   what the peer's acknowledgements say: acked segments, losses, round trips
//   frame receiver  what has arrived, in which order it is delivered, when it is acknowledged
//   paths           the ways to the peer (multipath/): round trip, losses, congestion, pace of each
//   timer           what to do when nothing is acknowledged: tail loss probe, retransmission timeout
//   liveness        whether the peer is still there
//
// Down: queue().post() -> transmit(now, link). Up: receive(now, frame) -> receiver().next() until false.
// Time is an argument everywhere; deadline() says when to call on_timer() again.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/counters.h"
#include "base/environment.h"
#include "base/log.h"
#include "base/status.h"
#include "carrier/carrier.h"
#include "link/link.h"
#include "multipath/address_pairing.h"
#include "multipath/path_manager.h"
#include "multipath/path_validator.h"
#include "reliability/ack_delay.h"
#include "reliability/ack_processor.h"
#include "reliability/flow_stats.h"
#include "reliability/flow_status.h"
#include "reliability/frame_receiver.h"
#include "reliability/frame_sender.h"
#include "reliability/frame_size.h"
#include "reliability/handshake.h"
#include "reliability/liveness.h"
#include "reliability/outgoing_ack.h"
#include "reliability/retransmission_timer.h"
#include "reliability/send_queue.h"
#include "wire/admit.h"
#include "wire/control.h"

namespace cluster::reliability {

struct FlowSettings {
  std::uint16_t window = 512;     ///< frames in flight, and frames kept beyond a gap
  std::size_t frame_max = 1472;   ///< largest frame this side sends or receives, header included
  std::size_t seal_overhead = 0;  ///< bytes that the link adds to each frame
  bool ethertype = false;         ///< the link receives frames of our EtherType
  Duration ack_delay =
      kAckDelay;  ///< longest (max_ack_delay of RFC 9000); `ack_delay` of a frame: what it was
  Duration peer_timeout = 5s;
  Duration stuck_timeout{0};         ///< see Liveness
  const TurnDelay* turns = nullptr;  ///< of the endpoint; outlives the flow
  /// This side can ask kernels whether a peer's process exists / its own kernel answers such questions.
  bool asks_kernels = false;
  bool kernel_answers = false;
};

/// What the opening block says of this side.
struct Identity {
  SocketAddress name;
  std::uint64_t epoch = 0;    ///< of this flow: larger than that of every earlier one of this name
  std::uint32_t session = 0;  ///< peers put it into their frames; not 0, not guessable
  std::uint64_t token =
      0;  ///< peers repeat it in their openings; not 0, not guessable, not even from the session
  /// The interfaces by number of link, the first being that of the name; outlives the flow. Empty: one.
  std::span<const multipath::Rail> rails = {};
  SocketAddress sibling{};  ///< another endpoint of this process, which the peer may know; empty: none
};

class Flow {
 public:
  /// `bodies` (made for such frames), `burst`, log and counters outlive the flow.
  Flow(const FlowSettings& settings, const Identity& identity, const link::Path& path, Log& log,
       Counters& counters, BodyPool& bodies, Burst& burst, Random& random);

  SendQueue& queue() { return queue_; }
  FrameReceiver& receiver() { return receiver_; }
  const Handshake& handshake() const { return handshake_; }
  multipath::PathManager& paths() { return paths_; }

  // --- down ---
  /// Any host may have written a frame of session 0 in the peer's name. So this side only answers with its opening. A peer that then
  /// addresses our session has received that opening at its address, and retransmits what its first frames carried.
  void answer_opening(const wire::FrameView& opening, const link::Path& reply_path, link::Link& link);
  /// Sends what may be sent now: lost frames first, then new ones, then an acknowledgement that is due and found no frame to ride on.
  /// Later bursts are dated by `clock`, if there is one: if the thread loses the processor, round trips must not contain that.
  void transmit(Time now, link::Link& link, Clock* clock = nullptr);

  // --- up ---
  /// `view` came through wire::admit and was addressed to this session (or carries the opening of its peer). `arrived`: at this node, where
  /// it may have lain unread; kNever: not known. With `count` > 1: the first of a run that receiver().takes_run(); the caller hands that on
  /// first. Call receiver().next() until it is false before anything else.
  ReceiveResult receive(Time now, const wire::FrameView& view, const link::Path& from, Time arrived = kNever,
                        std::size_t count = 1);
  /// Appends the tokens of segments that the peer has acknowledged.
  void take_acked(std::vector<carrier::Token>& tokens) { acks_.take_acked(tokens); }

  // --- time ---
  /// When on_timer() wants to be called; kNever if nothing is pending.
  Time deadline() const;
  /// Timers: loss, tail loss probe, retransmission timeout, delayed acknowledgement. Call transmit() after.
  void on_timer(Time now);

  // --- life ---
  /// A keep-alive was answered over this path by the peer's responder (the process lives), or a path challenge by its engine (the path leads
  /// to the peer). False: nothing was asked there that this answers.
  bool on_alive(Time now, const wire::FrameView& answer, const link::Path& from);
  /// ICMP says that nothing is at this address of the peer (port or host unreachable). The flow believes it only if it quotes a frame of
  /// this flow, and otherwise asks the peer.
  void on_path_error(Time now, const link::PathError& error);
  wire::ControlFrame keep_alive(Time now, const link::Path& path);
  Liveness& liveness() { return liveness_; }
  /// `ok` while the session lasts; else why it is over. A flow that is over takes and sends nothing.
  Status status() const { return status_.cause(); }
  /// True if every frame sent was acknowledged and no acknowledgement is owed.
  bool quiet() const { return queue_.drained() && !receiver_.owes_ack(); }
  /// The peer no longer has the session that it named in its opening. If nothing has happened in that session, this flow goes on as if that
  /// opening had never come, with the peer's next session. False: it is too late for that.
  bool reopen(Time now);
  void close(Time now, link::Link& link);

  FlowStats stats() const;
  /// True if `block` quotes a frame that this flow has in flight, so the reset is not forged.
  bool validates_reset(const wire::ResetBlock& block) const;

 private:
  void join_paths();
  void detect_losses(Time now);
  void send_again();
  void on_retransmission_timer(Time now, RetransmissionTimer::Event event);

  Counters& counters_;
  multipath::PathManager paths_;
  Handshake handshake_;
  FrameSize frame_size_;
  FlowStatus status_;
  RetransmissionTimer timer_;
  SendQueue queue_;
  FrameSender sender_;
  AckProcessor acks_;
  FrameReceiver receiver_;
  AnswerDelay answer_delay_;
  Liveness liveness_;
  multipath::PathChallenges challenges_;
  std::vector<Sequence> lost_frames_;  ///< by the last detect_losses()
  std::uint64_t lost_ = 0;             ///< frames, for stats()
};

}  // namespace cluster::reliability
