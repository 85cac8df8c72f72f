// The messenger is the protocol of one endpoint. It turns operations into segments, and arriving segments
// into completions. It knows messages, matching, credit and remote memory, but nothing about frames, rings or
// threads. It learns the time only from its arguments.
//
// The parts with their own state are in messenger_parts.h. Above them:
//   EagerProtocol, RendezvousProtocol  short messages, long ones
//   RemoteAccess, RmaTarget            remote writes and reads, of this side and of peers
//   AtomicProtocol                     both sides of atomics
// The messenger itself passes arriving segments to these parts. When a carrier has space, the messenger posts
// what waits on the carrier's channel: first the control segments, then the requests of the ordered queue,
// then those of the bulk queue. Only long requests of the ordered queue alternate with bulk requests.
//
// The engine calls the messenger under the engine lock and drives the carriers. The messenger only posts
// segments to the carriers. Nothing here blocks: if the carrier has no space, the channel keeps the segment,
// and pump() posts it later.
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

  // --- operations; `channel` must have a carrier. Status::again: no capacity now; call again later ---
  Status send(Channel& channel, const SendOp& op) {
    Status status;
    return eager_.post_now(channel, op, status) ? status : enqueue(channel, op);
  }
  RemoteAccess& rma() { return rma_; }
  Status atomic(Channel& channel, const AtomicRmaOp& op) { return atomics_.post(channel, op); }
  /// Returns how many more operations the application may begin.
  std::size_t tx_size_left() const { return outgoing_.left(); }
  /// Returns the part that posts and cancels receives, peeks for messages, and stores the messages that wait
  /// for a receive.
  Matcher& matcher() { return matcher_; }
  const Matcher& matcher() const { return matcher_; }
  /// Returns the part that serves peers' accesses to registered memory.
  RmaTarget& rma_target() { return rma_target_; }
  /// Completes a datagram (FI_EP_DGRAM) that has just been sent.
  void datagram_sent(const SendOp& op);

  // --- arrivals ---
  /// Processes a segment that has arrived. matcher().ready() must have returned true for it.
  void arrive(Channel& channel, const wire::Segment& segment, ConstBytes payload,
              const ArrivalInfo& info = {});
  /// Returns the memory of a receive or read of this side in which the payloads of the run belong, in one
  /// piece. The result is empty if there is no such memory, or if others may read it before the operation
  /// completes.
  Bytes place_of_run(const Channel& channel, const wire::RunView& run) {
    return run.segment.kind == wire::SegmentKind::bulk ? pulls_.place_of_run(channel, run)
                                                       : channel.assembly.place(run.size());
  }
  /// Like arrive(), for a run of segments that continue each other.
  void arrive_run(Channel& channel, const wire::RunView& run, const ArrivalInfo& info);
  /// Processes a datagram, which is one segment. A few datagrams may wait for a receive, as in any socket.
  /// The rest are dropped.
  void arrive_datagram(Channel& channel, const wire::Segment& segment, ConstBytes payload);
  /// Processes tokens that a carrier has reported as acknowledged.
  void acked(std::span<const Token> tokens, DirectSuccesses& direct) {
    for (const Token token : tokens) outgoing_.acked(token, direct);
  }
  /// Called by the transport whose device has read the first `bytes` bytes for the receive `id`, and reads no
  /// more. If any bytes are missing, this side pulls them.
  void device_read(Channel& channel, std::uint32_t id, std::size_t bytes) {
    pulls_.device_read(channel, id, bytes);
  }
  /// Makes sure that no device accesses this region any more. 0: no region at all.
  void end_device_access(std::uint64_t region) {
    outgoing_.end_grants(region);
    pulls_.end_device_writes(region);
  }
  void acked(std::span<const Token> tokens) {
    DirectSuccesses no_reader;
    acked(tokens, no_reader);
  }
  /// Called when a peer is lost. All operations in progress with the peer end with `status`, and the channel
  /// is reset. Complete messages of the peer stay in the store, and so do the headers of incomplete ones
  /// (Matcher::fail_messages). If `directed` is true, receives that wait for this peer alone end too.
  void fail(Channel& channel, Status status, bool directed);

  // --- progress ---
  /// Posts segments that waited for space in a carrier, and copies pieces of large messages from peers on
  /// this node.
  void pump();
  /// Like pump(), but also lends the pull budget of stalled peers to others. All arrivals up to `now` must
  /// have been processed before this call.
  void pump(Time now) {
    pulls_.check_stalls(now);
    if (busy()) pump();
  }
  /// Like pump(), for one channel. Returns true if nothing is left to post.
  bool pump(Channel& channel);
  /// Records that all segments posted so far are transmitted at `now`.
  void on_transmit(Time now) { pulls_.on_transmit(now); }
  /// Returns the time by which pump(now) must be called.
  Time deadline() const { return pulls_.deadline(); }
  /// Returns true if segments wait to be posted, or if a copy from or to a peer's memory is in progress.
  /// Considers only segments of channels for which counts(channel) is true.
  template <typename Counts = bool (*)(const Channel&)>
  bool busy(Counts counts = [](const Channel&) { return true; }) const {
    return control_.busy(counts) || !pulls_.idle() || rma_.pending();
  }
  /// Returns true if only transports may still have work. Each transport itself knows when it needs another
  /// turn.
  bool idle_but_for_accesses() const { return !control_.busy() && pulls_.idle(); }
  /// Returns true if a device is reading messages of peers, or may soon begin.
  bool device_reading() const { return pulls_.device_reading(); }
  /// Returns the part that lists channels for the engine: those with segments to post, and those with
  /// segments to transmit.
  ControlSender& control() { return control_; }
  /// Advertises credit again, to make an idle peer acknowledge something.
  void remind(Channel& channel) { control_.advertise_credit(channel); }

  const EndpointBindings& bindings() const { return context_.bindings; }
  /// Returns the parts, for the lanes (shm/fast_lane.h, shm/access_lane.h, reliability/frame_lane.h) and the
  /// groups.
  const MessengerParts& parts() const { return parts_; }

  /// Returns true if an operation of this side or a response to a peer is in progress, or if a receive is
  /// posted.
  bool under_way() const { return outgoing_.alive() + pulls_.pool().alive() != 0 || rma_.pending(); }
  /// Returns true if a receive, a message or a request in this messenger refers to the channel.
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
