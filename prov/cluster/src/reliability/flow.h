// A flow: all traffic between this endpoint and one peer over the network. Numbered frames leave through a
// window, the peer acknowledges ranges of them, and only missing frames are retransmitted.
//
// The flow composes objects that own their state, and contains no arithmetic of its own:
//   handshake       the two sessions, and what each side still has to say to open them
//   frame size      how long frames may be: what both links take, and what the path has shown to carry
//   send queue      the carrier that the protocol posts to: packs segments into frames, keeps them till acked
//   frame sender    which frames leave now, and on which path
//   ack processor   evaluates the peer's acknowledgements: acked segments, losses, round trips
//   frame receiver  which frames have arrived, in which order they are delivered, when they are acknowledged
//   paths           the ways to the peer (multipath/): round trip, losses, congestion, pace of each
//   timer           what to do when no acknowledgement comes: tail loss probe, retransmission timeout
//   liveness        whether the peer is still there
//
// Down: queue().post() -> transmit(now, link). Up: receive(now, frame) -> receiver().next() until false.
// Every call receives the time as an argument; deadline() says when to call on_timer() again.
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
  std::uint16_t window = 512;     ///< frames in flight, and frames that the receiver keeps beyond a gap
  std::size_t frame_max = 1472;   ///< largest frame this side sends or receives, header included
  std::size_t seal_overhead = 0;  ///< bytes that the link adds to each frame
  bool ethertype = false;         ///< the link receives frames of our EtherType
  Duration ack_delay =
      kAckDelay;  ///< the longest that this side delays an acknowledgement (max_ack_delay of RFC 9000)
  Duration peer_timeout = 5s;
  Duration stuck_timeout{0};         ///< see Liveness
  const TurnDelay* turns = nullptr;  ///< of the endpoint; must outlive the flow
  /// `asks_kernels`: this side can ask kernels whether a peer's process exists. `kernel_answers`: its own
  /// kernel answers such questions.
  bool asks_kernels = false;
  bool kernel_answers = false;
};

/// What the opening block says about this side.
struct Identity {
  SocketAddress name;
  std::uint64_t epoch = 0;    ///< of this flow; larger than the epoch of every earlier flow of this name
  std::uint32_t session = 0;  ///< peers put it into their frames; not 0, not guessable
  std::uint64_t token =
      0;  ///< peers repeat it in their openings; not 0, and not guessable even by those who know the session
  /// The interfaces by number of link. The first has the address of the name. Must outlive the flow. Empty:
  /// one interface.
  std::span<const multipath::Rail> rails = {};
  SocketAddress sibling{};  ///< another endpoint of this process, which the peer may know; empty: none
};

class Flow {
 public:
  /// `bodies` (for frames of this size), `burst`, `log` and `counters` must outlive the flow.
  Flow(const FlowSettings& settings, const Identity& identity, const link::Path& path, Log& log,
       Counters& counters, BodyPool& bodies, Burst& burst, Random& random);

  SendQueue& queue() { return queue_; }
  FrameReceiver& receiver() { return receiver_; }
  const Handshake& handshake() const { return handshake_; }
  multipath::PathManager& paths() { return paths_; }

  // --- down ---
  /// Answers an opening from a sender that has proven nothing: any host can write a frame of session 0 in the
  /// peer's name. This side sends only its own opening. A peer that then addresses our session has received
  /// the opening at its address, and retransmits its first frames.
  void answer_opening(const wire::FrameView& opening, const link::Path& reply_path, link::Link& link);
  /// Sends what may leave now: lost frames first, then new ones, then a due acknowledgement that found no
  /// frame to carry it. `clock`, if given, dates all bursts after the first: a round trip must not contain
  /// time during which the thread waited for a processor.
  void transmit(Time now, link::Link& link, Clock* clock = nullptr);

  // --- up ---
  /// Takes in a frame that wire::admit has accepted. It is addressed to this session, or carries the opening
  /// of our peer. `arrived`: when the frame came to this node, where it may have waited unread; kNever:
  /// unknown. With `count` > 1, `view` is the first frame of a run that receiver().takes_run() accepts; the
  /// caller delivers the run first. The caller then calls receiver().next() until it returns false, before
  /// anything else.
  ReceiveResult receive(Time now, const wire::FrameView& view, const link::Path& from, Time arrived = kNever,
                        std::size_t count = 1);
  /// Appends the tokens of segments that the peer has acknowledged.
  void take_acked(std::vector<carrier::Token>& tokens) { acks_.take_acked(tokens); }

  // --- time ---
  /// When to call on_timer(); kNever if nothing is pending.
  Time deadline() const;
  /// Runs the timers: loss, tail loss probe, retransmission timeout, delayed acknowledgement. Call transmit()
  /// afterwards.
  void on_timer(Time now);

  // --- life ---
  /// Takes in an answer that came over this path. The peer's responder answers a keep-alive: its process
  /// lives. The peer's engine answers a path challenge: the path leads to the peer. Returns false if this
  /// side asked no such question there.
  bool on_alive(Time now, const wire::FrameView& answer, const link::Path& from);
  /// ICMP says that this address of the peer is unreachable (port or host). The flow believes an error that
  /// quotes one of its frames. After any other error it asks the peer.
  void on_path_error(Time now, const link::PathError& error);
  wire::ControlFrame keep_alive(Time now, const link::Path& path);
  Liveness& liveness() { return liveness_; }
  /// `ok` while the session lasts, else why it ended. A flow that has ended accepts and sends nothing.
  Status status() const { return status_.cause(); }
  /// True if the peer has acknowledged every frame, and this side owes no acknowledgement.
  bool quiet() const { return queue_.drained() && !receiver_.owes_ack(); }
  /// The peer no longer has the session that it named in its opening. The flow forgets that opening and waits
  /// for the peer's next session. Returns false if it is too late: the old session is in use.
  bool reopen(Time now);
  void close(Time now, link::Link& link);

  FlowStats stats() const;
  /// True if `block` quotes a frame that this flow has in flight. Then the reset is not forged.
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
  std::vector<Sequence> lost_frames_;  ///< found by the last detect_losses()
  std::uint64_t lost_ = 0;             ///< frames, for stats()
};

}  // namespace cluster::reliability
