// A flow: everything between this endpoint and one peer over the network. Numbered frames go out
// through a window, come back as acknowledged ranges, and only what is missing travels again.
//
// The flow composes its rooms and holds no arithmetic of its own:
//   handshake        whose session this is, and what still has to be said to open it
//   frame_builder    packs segments into frames
//   send_window      frames in flight: what each carries, when it went, what its arrival completes
//   loss_detector    which of them are lost (RACK: RFC 8985), by transmission order and time
//   rtt, congestion  round trip in ns; how many frames may be in flight
//   pacer            how fast they may leave
//   rail_set         the ways to the peer: each has these four of its own; which is next, which has failed
//   receive_window   what has arrived, in which order it is handed on
//   ack_builder      when and what to acknowledge
//
// Down: post() -> open frame -> transmit(now, link). Up: receive(now, frame) -> next() until false.
// Time is an argument everywhere; deadline() says when to call on_timer() again.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/environment.h"
#include "base/status.h"
#include "carrier/carrier.h"
#include "link/link.h"
#include "multipath/address_pairing.h"
#include "multipath/path_stats.h"
#include "wire/admit.h"

namespace cluster::reliability {

struct FlowSettings {
  std::uint16_t window = 512;    ///< frames in flight, and frames kept beyond a gap
  std::size_t frame_max = 1472;  ///< largest frame this side sends or receives, header included
  bool shortcut = false;         ///< the link has one, so this side hears what comes by it
  Duration ack_delay = 25us;
  Duration peer_timeout = 10s;
};

class BodyPool;

/// Who this side is, for the opening block.
struct Identity {
  SocketAddress name;
  std::uint64_t epoch = 0;    ///< of this flow: larger than that of every earlier one of this name
  std::uint32_t session = 0;  ///< peers put it into their frames; not 0, not guessable
  /// The interfaces by number of link, the first being that of the name; outlives the flow. Empty: one.
  std::span<const multipath::Rail> rails = {};
};

/// What a flow knows and has done, for whoever asks.
struct FlowStats {
  std::vector<multipath::PathStats> rails;
  std::size_t frame_max = 0;        ///< longest frame it sends, bytes
  std::size_t queued = 0;           ///< frames that wait to be sent
  std::uint64_t sent = 0;           ///< frames, repairs included
  std::uint64_t retransmitted = 0;  ///< frames sent again
  std::uint64_t lost = 0;           ///< frames held for lost
  Time heard_at{};                  ///< the peer's last sign of life; Time{}: none yet
  std::size_t footprint = 0;        ///< bytes of memory held for the peer
};

class Flow final : public carrier::Carrier {
 public:
  enum class ReceiveResult : std::uint8_t {
    accepted,     ///< something new: call next(); the sender's path is genuine
    nothing_new,  ///< a duplicate or a bare acknowledgement of this session
    refused,      ///< not of this session or outside the window: dropped and counted
  };

  /// `bodies` is made for links of at least `settings.frame_max` and outlives the flow.
  Flow(const FlowSettings& settings, const Identity& identity, const link::Path& path,
       const Environment& environment, BodyPool& bodies);
  ~Flow() override;

  // --- down: carrier::Carrier ---
  std::size_t payload_max(const wire::Segment& segment) const override;
  std::size_t fragment_max(const wire::Segment& segment) const override;
  /// Half of what may be under way: a window that has grown has shown what the path takes at once.
  std::size_t eager_limit() const override;
  bool post(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode hold,
            carrier::Token token) override;
  bool immediate() const override { return false; }
  /// To whoever sent `opening`, which may be forged: who we would be to it, and nothing else. If it turns
  /// to that session it is genuine.
  void accept_opening(const wire::FrameView& opening, link::Link& link);
  /// True if frames are unanswered, none waits to be sent, and another segment like the last would find room
  /// in the open one: it may wait for that.
  bool may_coalesce() const;
  /// Somebody calls while we call: told whom to turn to, and not believed before it does. Its data will come
  /// again.
  void answer_opening(const wire::FrameView& call, const link::Path& way_back, link::Link& link);
  /// Sends what may be sent now: lost frames first, then new ones, then an acknowledgement that is
  /// due and found no frame to ride on.
  void transmit(Time now, link::Link& link);

  // --- up ---
  /// `view` came through wire::admit and was addressed to this session (or carries the opening of
  /// the peer this flow belongs to). Call next() until it is false before anything else.
  /// `arrived`: at this node, where the frame may have lain for long; kNever: nobody knows.
  ReceiveResult receive(Time now, const wire::FrameView& view, const link::Path& from, Time arrived = kNever);
  /// The next run of segments to hand to the protocol, in the order that was promised. The bytes
  /// stay valid until the next call of next() or receive().
  bool next(ConstBytes& segments);
  /// There is no room for `rest`, the end of what next() gave last, which begins with an ordered segment: the
  /// peer is told of neither that frame nor what lies behind it, and what matters in any order comes on.
  /// Until resume(), which is for when there is room for the first segment of held().
  void hold(ConstBytes rest);
  /// True if what next() gave last came in its turn, so that it can be held.
  bool may_hold() const;
  bool holding() const;
  ConstBytes held() const;
  void resume(Time now);
  /// Appends the tokens of segments that the peer has by now.
  void take_delivered(std::vector<carrier::Token>& tokens);

  // --- time ---
  /// When on_timer() wants to be called; kNever if nothing is pending.
  Time deadline() const;
  /// Timers: loss, tail-loss probe, retransmission timeout, delayed acknowledgement. transmit() after.
  void on_timer(Time now);

  // --- life ---
  /// The peer's probe responder says, over this way, that it lives (its engine may be busy computing); or its
  /// engine says so, which shows that the way leads to the peer.
  void on_alive(Time now, const link::Path& from, bool by_engine);
  /// The network says that nothing is at this address of the peer (port or host unreachable).
  void on_path_error(Time now, const link::PathError& complaint);
  /// True if it is time to ask the peer's probe responder for a sign of life; asked again each second.
  bool wants_probe(Time now);
  /// none while it lives; else why it is over. A dead flow takes and sends nothing.
  Status status() const;
  /// True if every frame sent was acknowledged and no acknowledgement is owed.
  bool quiet() const;
  /// True if nothing this side sent is unacknowledged.
  bool drained() const;
  /// Says goodbye once (a fin frame); the flow is dead afterwards.
  void close(Time now, link::Link& link);

  /// True once the peer has addressed this session: its address is no forgery.
  bool address_validated() const;
  std::uint32_t session() const;       ///< the one in `Identity`
  std::uint32_t peer_session() const;  ///< 0 until the peer's opening was seen
  std::uint64_t peer_epoch() const;    ///< 0 until then
  /// Those of its further addresses at which it has been met.
  std::span<const SocketAddress> validated_addresses() const;
  /// Where to ask for a sign of life: another rail each time.
  const link::Path& path();
  FlowStats stats() const;
  /// True if `block` quotes a frame this flow has in flight: the reset is genuine.
  bool validates_reset(const wire::ResetBlock& block) const;

 private:
  struct Rooms;
  std::unique_ptr<Rooms> rooms_;
};

}  // namespace cluster::reliability
