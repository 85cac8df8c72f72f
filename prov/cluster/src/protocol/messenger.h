// The protocol of one endpoint: turns operations into segments, and segments into completions. It knows
// messages, matching, credit and remote memory. It knows nothing about frames, rings or threads. It knows the
// time only from ArrivalInfo and pump().
//
// The parts with their own state are in messenger_parts.h. Above them:
//   EagerProtocol, RendezvousProtocol  short messages, long ones
//   RemoteAccess, RmaTarget            remote writes and reads, of this side and of peers
//   AtomicProtocol                     both sides of atomics
// The messenger itself passes arriving segments to these, and lets the requests of a channel take turns. When
// a carrier has space, its channel posts the kept control segments first, then from the ordered and the bulk
// queue in turns.
//
// The engine calls the messenger under the engine lock and drives the carriers. The messenger only posts to
// them. Nothing here blocks: if the carrier has no space, the channel keeps the segment, and pump() posts it
// later.
#pragma once

#include <span>

#include "protocol/atomic_protocol.h"
#include "protocol/eager_protocol.h"
#include "protocol/remote_access.h"
#include "protocol/rendezvous_protocol.h"
#include "protocol/rma_target.h"

namespace cluster::protocol {

class Messenger {
 public:
  Messenger(const MessengerSettings& settings, Counters& counters, AddressHandles& handles);

  void attach(const EndpointBindings& bindings) { context_.bindings = bindings; }

  // --- operations: `channel` has a carrier. ok: taken; again: no capacity, repeat after progress ---
  Status send(Channel& channel, const SendOp& op) {
    Status status;
    return eager_.post_now(channel, op, status) ? status : enqueue(channel, op);
  }
  RemoteAccess& rma() { return rma_; }
  Status atomic(Channel& channel, const AtomicRmaOp& op) { return atomics_.post(channel, op); }
  /// Operations that the application may still begin.
  std::size_t tx_size_left() const { return outgoing_.left(); }
  /// The posted receives (post, cancel, peek) and the messages that wait for one.
  Matcher& matcher() { return matcher_; }
  const Matcher& matcher() const { return matcher_; }
  /// Serves what peers do to registered memory.
  RmaTarget& rma_target() { return rma_target_; }
  /// A datagram (FI_EP_DGRAM) has left, which completes it.
  void datagram_sent(const SendOp& op);

  // --- arrivals ---
  /// `segment` is one that matcher().ready() was true for.
  void arrive(Channel& channel, const wire::Segment& segment, ConstBytes payload,
              const ArrivalInfo& info = {});
  /// Like arrive(), for segments that continue each other.
  void arrive_run(Channel& channel, const wire::RunView& run, const ArrivalInfo& info);
  /// Takes in a datagram, which is one segment. A few may wait for their receive, as in any socket; the rest
  /// are dropped.
  void arrive_datagram(Channel& channel, const wire::Segment& segment, ConstBytes payload);
  /// Takes the tokens that a carrier has reported as acknowledged.
  void acked(std::span<const Token> tokens);
  /// Ends everything in progress with a lost peer with `status`. The channel starts afresh. Messages that
  /// have arrived completely stay, and so do the headers of others (Matcher::fail_messages). With `directed`,
  /// receives that wait for this peer alone end too.
  void fail(Channel& channel, Status status, bool directed);

  // --- progress ---
  /// Posts what waited for space in a carrier.
  void pump();
  /// Like pump(), after all arrivals up to `now` have been processed. Lends out the pull budget of stalled
  /// peers.
  void pump(Time now) {
    pulls_.check_stalls(now);
    if (busy()) pump();
  }
  /// Like pump(), for one channel. Returns true if nothing is left to post.
  bool pump(Channel& channel);
  /// Segments posted so far leave the flows at `now`.
  void on_transmit(Time now) { pulls_.on_transmit(now); }
  /// When to call pump(now) at the latest.
  Time deadline() const { return pulls_.deadline(); }
  /// True if segments of a channel that counts() wait to be posted, or if a copy from or to a peer's memory
  /// is in progress.
  template <typename Counts = bool (*)(const Channel&)>
  bool busy(Counts counts = [](const Channel&) { return true; }) const {
    return control_.busy(counts) || !pulls_.idle() || rma_.pending();
  }
  /// True if only transports still have work, and they know by themselves when to look at it.
  bool idle_but_for_accesses() const { return !control_.busy() && pulls_.idle(); }
  /// Segments posted outside pump() and outside operations. The engine has to transmit them.
  ControlSender& control() { return control_; }
  /// Advertises credit again, to make an idle peer acknowledge something.
  void remind(Channel& channel) { control_.advertise_credit(channel); }

  const EndpointBindings& bindings() const { return context_.bindings; }
  /// Shared with other components that complete messages: short ones (shm/fast_lane.h), and those of groups.
  const MessengerParts& parts() const { return parts_; }

  /// True if an operation is in progress.
  bool under_way() const { return outgoing_.alive() + pulls_.pool().alive() != 0 || rma_.pending(); }
  /// True if anything here refers to the channel.
  bool references(const Channel& channel) const;

 private:
  void on_answer(Channel& channel, const wire::Segment& segment, Status status);
  Status enqueue(Channel& channel, const SendOp& op);
  void take_turns(Channel& channel);
  bool advance(OutgoingRequest& request);
  bool advance_message(SendRequest& request);
  bool stream(OutgoingRequest& request);

  Context context_;
  CompletionReporter reporter_;
  ControlSender control_;
  OutgoingRequests outgoing_;
  PullReceiver pulls_;
  Matcher matcher_;
  const MessengerParts parts_{context_, reporter_, control_, outgoing_, pulls_, matcher_};
  EagerProtocol eager_{parts_};
  RendezvousProtocol rendezvous_{parts_};
  RemoteAccess rma_{parts_};
  RmaTarget rma_target_{parts_};
  AtomicProtocol atomics_{parts_};
};

}  // namespace cluster::protocol
