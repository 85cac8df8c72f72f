// The fast lane carries short messages between peers of one node, with one function for each direction. Most
// conditions for its use are checked in advance, once for many messages. All other messages take the general
// path, which checks everything for each message. The general path does not depend on the lane.
//
// Down. While the lane to a peer is open, Peer::lane points to the ring to that peer. Otherwise Peer::lane is
// null. Every call that starts an operation on the general path first closes the lane. At the end of the
// call, the transport opens the lane again if
//   - the endpoint has a completion queue for transmits, and no counter for sends;
//   - the peer is reached by a ring in shared memory, and has not failed;
//   - no operation waits in the peer's queue, and a message may overtake all pending operations.
// Only four events can make one of these conditions false: an operation, a failure (PeerTable::mark_failed),
// the end of the ring (LocalPeers::remove) and a new binding (Engine::attach). Each of them closes the lane.
// For each message, send() checks only three further conditions: there is credit, the ring has space, and the
// message is short enough for the eager protocol. The code in api/ does not call send() if the flags of an
// operation request more than a plain send, such as a fence or a completion after delivery.
//
// Up. A whole eager message is delivered to the first posted receive that matches. This receive must be for
// one message, must be long enough, and must report its completion. The payload is copied into the user's
// buffer, and the completion is put into the queue. If no receive matches, this side leaves the message in
// the ring. The application often posts the matching receive next, above all where ranks take turns on a
// processor. It would cost more than the message itself to store the message, find it, and copy it again.
// This side stores the message instead if it has left messages in this ring kPatience times since the lane's
// last delivery from the ring. From then on this side stores the messages that follow in the ring, too, until
// a receive matches one of them. (In a new ring, this side also stores messages until a receive matches one.)
// A message is stored at once if a posted receive could take a later message of the same sender. A full turn
// (EventLoop::run_once) also stores messages at once. Full turns take place before a thread sleeps, for a
// peek, and at regular times.
//
// The lane leaves all other segments to LocalPeers: whole writes that get no answer to deliver_write(), and
// the rest to deliver(). Among the rest are messages that match a multi-receive buffer, or a receive behind
// many others in the queue. Messages that might not fit into the unexpected store, and messages after which
// this side must grant credit, are also among the rest. If a counter for receives is bound, or if the
// application wants the addresses of unknown sources (FI_SOURCE_ERR), the lane leaves all messages to the
// general path. If the endpoint shares receives with others, the lane takes only messages that match the
// oldest receive of the endpoint itself.
//
// Receives. post() reuses the request of an earlier receive to which the lane has delivered a message. No
// peer knows the id of such a request. So the request needs no new id, and the lane need not return it to the
// pool first. A receive takes the general path if there is no such request, if a message is stored, or if the
// posted receives are indexed because there are many.
//
// send(), receive() and post() run under the engine lock, and leave no work for the engine. So a turn in
// which only the lane has work may skip everything else (EventLoop::run_calm).
#pragma once

#include "base/bytes.h"
#include "protocol/messenger.h"
#include "protocol/short_messages.h"
#include "shm/local_peer.h"
#include "shm/ring_inbox.h"

namespace cluster::shm {

using protocol::ShortSend;

static_assert(ShortSend::kBytesMax <= Geometry::kArenaMin / 8, "it always fits into one segment");

class FastLane : public protocol::ShortArrivals {
 public:
  /// Tests set `enabled` to false to compare the lane with the general path.
  FastLane(protocol::Messenger& messenger, bool enabled) : ShortArrivals(messenger), enabled_(enabled) {}

  bool enabled() const { return enabled_; }
  static void close(Peer& peer) { peer.lane = nullptr; }
  /// Opens the peer's lane if the conditions under "Down" above hold. The lane must be closed.
  void review(LocalPeer& peer) const;

  /// Sends the message. If the lane cannot take the message, does nothing and returns false.
  bool send(Peer& peer, const ShortSend& message) {
    if (peer.lane == nullptr) [[unlikely]]
      return false;
    auto* const ring = static_cast<Outbox*>(peer.lane);
    const std::size_t length = message.header.length;
    if (length > peer.channel.eager_max || !peer.channel.credit.covers(length) ||
        !ring->post_short(message.header, message.payload)) [[unlikely]] {
      return false;
    }
    peer.channel.credit.charge(length);
    Counters& counters = context_.counters;
    ++counters.fast_sent;
    ++counters.eager_sent;
    counters.bytes_sent += length;
    if (!message.report) return true;
    context_.bindings.tx_queue->push_success(
        {.context = message.context, .tagged = message.header.tagged, .tag = message.header.tag});
    return true;
  }

  /// Posts a receive; a null `from` means any sender. If the lane cannot post it, does nothing and returns
  /// false. A reused request differs from a new one only in the fields that its last message may have
  /// changed. post() sets these fields.
  bool post(protocol::Channel* from, const protocol::ShortReceive& op) {
    protocol::MatchQueue& queue = matcher_.queues().application(op.tagged);
    if (matcher_.stored() != 0 || queue.indexed()) [[unlikely]]
      return false;
    auto* const receive = static_cast<protocol::RecvRequest*>(pulls_.pool().take_kept());
    if (receive == nullptr) [[unlikely]]
      return false;
    receive->context = op.context;
    receive->slices.replace(op.buffer);
    receive->capacity = op.buffer.size();
    receive->from = from;
    receive->tag = op.tag;
    receive->ignore = op.ignore;
    receive->tagged = op.tagged;
    receive->report = receive->plain = op.report;
    receive->noted = {};
    queue.post_unindexed(*receive);
    return true;
  }

  enum class Outcome : std::uint8_t {
    taken,    ///< delivered or stored
    left,     ///< no receive matches the message yet, so it stays in the ring for some time
    refused,  ///< the lane does not handle this segment, and has done nothing
  };
  /// Delivers the next message in the peer's ring. The ring must contain a segment.
  template <typename Read>
  Outcome receive(LocalPeer& peer, Read& read) {
    ShortMessage message;
    protocol::Channel& channel = peer.channel;
    if (!peer.ring->peek_short(message) || channel.assembly.active()) return Outcome::refused;
    const wire::EagerHeader& header = message.header;
    protocol::MatchQueue& queue = matcher_.queues().application(header.tagged);
    protocol::RecvRequest* const receive = queue.match_oldest(&channel, header.tag);
    if (receive == nullptr) [[unlikely]]
      return receive_later(peer, read);
    return taken_if(deliver<Place::oldest>(peer, queue, *receive, message, read));
  }

 private:
  enum class Place : std::uint8_t { oldest, later };
  static constexpr std::uint8_t kPatience = 16;  ///< how many times a message may be left in the ring

  /// Delivers the message to a receive other than the oldest, stores it, or leaves it in the ring. Reads the
  /// message from the ring again, so that receive() need not pass it in memory and can keep it in registers.
  template <typename Read>
  [[gnu::noinline]] Outcome receive_later(LocalPeer& peer, Read& read) {
    ShortMessage message;
    if (context_.bindings.shared_receives != nullptr || !peer.ring->peek_short(message))
      return Outcome::refused;
    protocol::MatchQueue& queue = matcher_.queues().application(message.header.tagged);
    const auto [receive, whole, awaits_sender] = queue.match_among_few(&peer.channel, message.header.tag);
    if (receive != nullptr) return taken_if(deliver<Place::later>(peer, queue, *receive, message, read));
    if (!whole) return Outcome::refused;
    if (!awaits_sender && peer.patience != 0) {
      --peer.patience;
      return Outcome::left;
    }
    return taken_if(store(peer, message));
  }
  static Outcome taken_if(bool taken) { return taken ? Outcome::taken : Outcome::refused; }
  template <Place place, typename Read>
  bool deliver(LocalPeer& peer, protocol::MatchQueue& queue, protocol::RecvRequest& receive,
               const ShortMessage& message, Read& read) {
    protocol::Channel& channel = peer.channel;
    const wire::EagerHeader& header = message.header;
    const bool direct = read.accepts(rx_queue_);
    if (rx_queue_ == nullptr || !takes(receive, header.length) || !charge(channel, header.length))
      return false;
    std::byte* const buffer = receive.buffers()[0].data();
    copy_short(buffer, message.payload, header.length);
    place == Place::oldest ? queue.withdraw_oldest() : queue.withdraw(receive);
    if (direct) [[likely]] {
      read.take(completion_of(receive, channel, header, buffer));
    } else {
      queue_arrival(completion_of(receive, channel, header, buffer));
    }
    ++context_.counters.fast_received;
    context_.counters.bytes_received += header.length;
    peer.patience = kPatience;
    pulls_.pool().keep(receive);
    peer.ring->pop();
    return true;
  }
  /// Stores a message that no receive matches. If the lane cannot store it, does nothing and returns false.
  bool store(LocalPeer& peer, const ShortMessage& message) const;
  /// Puts the completion into the queue. Called if the current call of the application does not read this
  /// queue, or if other completions wait in the queue.
  [[gnu::noinline]] void queue_arrival(const protocol::Success& arrival) const {
    rx_queue_->push_success(arrival);
  }

  bool enabled_;
};

}  // namespace cluster::shm
