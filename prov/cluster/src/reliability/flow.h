// A flow is one session with one peer over the network. Numbered frames leave through a window, and the peer
// acknowledges ranges of them. The flow retransmits frames one by one, never a whole window.
//
// The flow consists of these objects, each of which owns its state:
//   handshake       the sessions of both sides, and whether each side has the other's opening
//   frame size      how long frames may be: what both links carry, and what the path is known to carry
//   send queue      the carrier for the protocol's posts: packs them into frames, and keeps the frames
//   frame sender    which frames leave now, and on which path
//   ack processor   what the peer's acknowledgements say: acknowledged segments, losses, round trips
//   frame receiver  which frames have arrived, in which order they are delivered, when they are acknowledged
//   paths           the paths to the peer (multipath/), each with its round trip, losses, congestion and pace
//   timer           what to do when no acknowledgement arrives: tail loss probe, retransmission timeout
//   liveness        whether the peer is still alive
//   frame lane      a shorter way for short messages and writes, while one path exists and no frame is lost
//
// Down: queue().post() -> transmit(now, link). Up: receive(now, frame) -> receiver().next(), until next()
// returns false. A call that needs the current time receives it as an argument. deadline() says when to call
// on_timer().
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/counters.h"
#include "base/environment.h"
#include "base/log.h"
#include "base/outage.h"
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
#include "reliability/frame_lane.h"
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
  /// The most frames that may be in flight, and the most that the receiver keeps behind a gap.
  std::uint16_t window = 512;
  /// Bytes of the longest frame that this side sends or receives, header included.
  std::size_t frame_max = 1472;
  std::size_t seal_overhead = 0;  ///< bytes that the seal of the link adds to each frame
  std::size_t overhead = 0;       ///< bytes that the link adds to each frame in all
  bool ethertype = false;         ///< true if the link receives frames of our EtherType
  bool ethertype_whole = true;    ///< these frames may have up to link::kEthertypeFrameMax bytes
  /// The longest time by which this side delays an acknowledgement (max_ack_delay of RFC 9000).
  Duration ack_delay = kAckDelay;
  Duration peer_timeout = 20s;
  Duration refresh_interval{0};  ///< EngineSettings::refresh_interval
  Duration stuck_timeout{0};     ///< how long the peer's engine may stay silent; 0 means forever
  /// Estimates how late the turns of the endpoint are; must outlive the flow.
  const TurnDelay* turns = nullptr;
  const Outage* outage = nullptr;  ///< silence in an outage does not count; must outlive the flow
  /// `asks_kernels` is true if this side can ask a peer's kernel whether the peer's process exists.
  /// `kernel_answers` is true if the kernel of this node answers such questions.
  bool asks_kernels = false;
  bool kernel_answers = false;
  bool lane = true;           ///< short messages may take the frame lane
  bool device_reads = false;  ///< EngineSettings::device_reads
};

/// What the opening says about this side.
struct Identity {
  SocketAddress name;
  std::uint64_t epoch = 0;    ///< epoch of this flow, larger than those of all earlier flows of this name
  std::uint32_t session = 0;  ///< the peer puts it into its frames; not 0, and cannot be guessed
  /// The peer repeats this token in its opening. The token is not 0, and even a host that knows the session
  /// cannot guess it.
  std::uint64_t token = 0;
  /// The rails, indexed by the number of their link. The first rail has the IP address of `name`. The span
  /// must outlive the flow. It can be empty if there is only one rail.
  std::span<const multipath::Rail> rails = {};
  /// Another endpoint of this process, which the peer may know already; empty if there is none.
  SocketAddress sibling{};
  std::uint16_t incarnation = 0;  ///< random, the same for all flows of this endpoint
};

class Flow {
 public:
  /// `bodies`, `burst`, `log`, `counters` and `random` must outlive the flow. `bodies` must be made for
  /// FlowSettings::frame_max.
  Flow(const FlowSettings& settings, const Identity& identity, const link::Path& path, Log& log,
       Counters& counters, BodyPool& bodies, Burst& burst, Random& random);

  SendQueue& queue() { return queue_; }
  FrameReceiver& receiver() { return receiver_; }
  FrameLane& lane() { return lane_; }
  const Handshake& handshake() const { return handshake_; }
  multipath::PathManager& paths() { return paths_; }

  // --- down ---
  /// Answers an opening whose sender is not proven to be the peer: any host can spoof the peer's address in a
  /// frame of session 0. The answer contains only the opening of this side. If the peer later sends frames to
  /// our session, the answer has reached the peer's address. Nothing is lost: once the peer has the answer,
  /// the peer retransmits the frames that it has sent before.
  void answer_opening(const wire::FrameView& opening, const link::Path& reply_path, link::Link& link);
  /// Sends the frames that may leave now: first lost frames, then new ones. An acknowledgement that is due,
  /// and that no frame has carried, leaves in a frame of its own. `clock`, unless null, gives the time at
  /// which each burst after the first leaves. Without a clock, a round trip would seem longer whenever the
  /// thread has waited for a processor between two bursts.
  void transmit(Time now, link::Link& link, Clock* clock = nullptr);

  // --- up ---
  /// Handles a frame that wire::admit() has accepted. Refuses the frame in the cases that
  /// ReceiveResult::refused names. `arrived`: when this node received the frame, perhaps long before `now`;
  /// kNever if that is unknown. If `count` > 1, `view` is the first frame of a run for which
  /// receiver().takes_run() has returned true. The caller delivers such a run itself. In every case, the
  /// caller must then call receiver().next() until next() returns false, before it calls any other function
  /// of the flow.
  ReceiveResult receive(Time now, const wire::FrameView& view, const link::Path& from, Time arrived = kNever,
                        std::size_t count = 1);
  /// Sets `tokens` to the tokens of segments that the peer has acknowledged since the last call.
  void take_acked(std::vector<carrier::Token>& tokens) { acks_.take_acked(tokens); }

  // --- time ---
  /// Returns when to call on_timer(), or kNever if nothing is pending. If the lane was used since the last
  /// call of transmit(), call settle() first.
  Time deadline() const;
  void settle() { lane_.settle(); }
  /// Runs the timers: liveness, loss detection, tail loss probe, retransmission timeout, and the timeout
  /// after a fin. After this call, the caller must call transmit(), which also sends a delayed
  /// acknowledgement.
  void on_timer(Time now);

  // --- life ---
  /// Handles the answer to a keep-alive or a path challenge. `from`: path over which the answer has arrived.
  /// An answer from the peer's responder to a keep-alive shows that the peer's process is alive. An answer
  /// from the peer's engine to a path challenge also shows that the path leads to the peer. Returns false
  /// unless this side has sent the question to the address `from.to`, and the question has no answer yet.
  bool on_alive(Time now, const wire::FrameView& answer, const link::Path& from);
  /// Called after the address of this side on this link was replaced. Announces the new address to the peer.
  void on_own_move(Time now, std::size_t link);
  /// Called for a challenge that names both sessions, and whose source is not an address of the peer. The
  /// challenge says which rail of the peer has the source address now. If the peer has such a rail, this side
  /// challenges the source address. Returns false if the peer has no such rail, if frames must not be sent to
  /// the address, or if the flow has ended.
  bool check_peer_move(Time now, const wire::FrameView& challenge, const link::Path& from, link::Link& link);
  /// Called after this side has replaced the queue pair with this number in its opening. Frames that still
  /// carry the opening name the queue pair `now`. But the peer may keep the opening of an earlier frame.
  /// Therefore this side has to tell the peer (owed_queue_pairs()).
  void on_own_queue_pair(std::size_t number, const SocketAddress& now) {
    handshake_.replace_own_queue_pair(number, now);
    owed_queue_pairs_ |= 1u << number;
  }
  /// Returns the numbers, as bits, of the queue pairs that were replaced and that the peer was not told yet.
  unsigned owed_queue_pairs() const { return owed_queue_pairs_; }
  void on_queue_pairs_told() { owed_queue_pairs_ = 0; }
  /// Handles a segment of the kind new_queue_pair: the peer has replaced the queue pair with this number in
  /// its opening by the one with the number `queue_pair`. Returns false if the peer names no such queue pair.
  bool on_peer_queue_pair(Time now, std::size_t number, std::uint32_t queue_pair);
  /// Returns how often an address of the peer was replaced.
  std::uint32_t peer_moves() const { return peer_moves_; }
  /// Handles an ICMP error that says that a frame did not reach the peer's port. The flow trusts an error
  /// that quotes one of its frames. Any other error only makes a keep-alive due, if the peer owes an
  /// acknowledgement.
  void on_path_error(Time now, const link::PathError& error);
  /// Called for a reset that says that our opening came from an address that the opening does not name. The
  /// reset must be valid (validates_reset()). Has no effect once the peer has answered. If the peer gives no
  /// other answer, the flow ends after a while.
  void on_foreign_source(Time now);
  /// Returns a keep-alive to send over this path, and notes that it leaves now.
  wire::ControlFrame keep_alive(Time now, const link::Path& path);
  Liveness& liveness() { return liveness_; }
  const Liveness& liveness() const { return liveness_; }
  /// Called when the network may work again after an outage. If frames are in flight, retransmits one of them
  /// soon.
  void hurry(Time now) { timer_.expedite(now); }
  /// Returns `ok` while the flow is alive, else why it ended. A flow that has ended accepts and sends
  /// nothing.
  Status status() const { return status_.cause(); }
  /// Returns true if the peer has acknowledged every frame, and this side owes no acknowledgement.
  bool quiet() const { return queue_.drained() && !receiver_.owes_ack(); }
  /// Called when the peer no longer has the session that it named in its opening. The flow forgets that
  /// opening, and calls the peer again. Returns false if the peer has already sent a numbered frame, an
  /// acknowledgement or a fin in that session. Also returns false if the peer has named no session, or if the
  /// flow has ended.
  bool reopen(Time now);
  /// Returns true if no numbered frame and no fin of the peer's session has arrived. In this case nothing of
  /// that session has been delivered. So the peer may still use its session, with another session of ours.
  bool untouched() const { return receiver_.untouched(); }
  /// Returns true if frames are in flight for a session that the peer has named but not used, and `newer`
  /// comes from the same incarnation of the peer. In this case the peer has given up that session, or has
  /// never stored the session. The peer refuses the frames with a reset, and this flow then asks for a new
  /// session (reopen()).
  bool given_up_for(const wire::Opening& newer) const {
    return handshake_.is_of_same_incarnation(newer) && !handshake_.peer_has_opening() && untouched() &&
           !queue_.drained();
  }
  /// Ends the flow, and sends the peer a fin.
  void close(Time now, link::Link& link);

  FlowStats stats() const;
  /// Returns true if `block` quotes a frame that this flow has in flight, or a challenge that it has sent to
  /// `from`, the sender of the reset. A host that has not seen the quoted frame cannot know its numbers.
  bool validates_reset(const wire::ResetBlock& block, const SocketAddress& from) const;

 private:
  void join_paths();
  void move_peer(Time now, std::uint8_t rail, const link::Path& to);
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
  FrameLane lane_;
  /// The frames that the last call of detect_losses() or send_again() has declared lost.
  std::vector<Sequence> lost_frames_;
  std::uint32_t peer_moves_ = 0;
  unsigned owed_queue_pairs_ = 0;
  Time moved_peer_asked_at_{};  ///< when this side sent the challenge whose answer last moved the peer
  std::uint64_t lost_ = 0;      ///< number of frames declared lost so far, for stats()
};

}  // namespace cluster::reliability
