// The fast lane carries short messages between peers of one node, with one function for each direction.
// Whether messages may take the lane is decided beforehand, once for many messages. All others take the
// general road, which checks everything for each message. The general road behaves the same with and without
// the lane.
//
// Down. Peer::lane points to the ring to that peer while the lane is open; else it is null. Every operation
// on the general road closes the lane before it begins. The operation opens the lane again at its end if
//   - the endpoint has a transmit queue, and no counter of sends;
//   - the peer's carrier is a ring in shared memory, and the peer has not failed;
//   - no operation waits in the peer's queue, and none is under way that a message must not overtake.
// Only four things can make one of these conditions false: an operation, a failure (PeerTable::mark_failed),
// the end of the ring (LocalPeers::remove) and a new binding (Engine::attach). Each of them closes the lane.
// For each message, send() checks only what changes with every message: credit, space in the ring, and that
// the length is eager. Whether an operation asks for more than a plain send (a fence, delivery) is decided in
// api/, when its flags are set.
//
// Up. A whole eager message goes to the first posted receive that matches. That receive must be for one
// message, long enough, and report its completion. The payload goes into the user's buffer, the completion
// into the queue. If no receive waits for the message, it stays in the ring for kPatience looks, unless a
// posted receive could take a message behind it. Where ranks take turns on a processor, the application often
// posts that receive next. To store the message, find it and copy it again would cost more than the message
// itself. After these looks the message goes into the store. So do the messages behind it, until a receive
// waits for one of them. (A general turn stores at once: before sleep, for a peek, and whenever the clock
// demands such a turn.)
//
// All other segments stay untouched for LocalPeers::deliver. So do messages for a multi-receive buffer or for
// a receive behind many others. The same holds for a message if the store may be too full, or if this side
// must grant credit after it. If a counter is bound, all messages stay.
//
// Receives. post() reuses the request of a receive that the lane has filled before. No peer has learnt the id
// of that request, so the lane need not return it to the pool and build a new one. A receive takes the
// general road while a message is stored, or while so many receives are posted that they are indexed.
//
// send(), receive() and post() run under the engine lock and leave the engine nothing to do. So a turn that
// needs only these may skip the rest (EventLoop::run_calm).
#pragma once

#include "base/bytes.h"
#include "protocol/messenger.h"
#include "shm/local_peer.h"
#include "shm/ring_inbox.h"

namespace cluster::shm {

/// A message for the lane: one copy into the ring, one out of it.
struct ShortSend {
  wire::EagerHeader header;
  const void* payload = nullptr;  ///< header.length bytes
  void* context = nullptr;
  bool report = true;  ///< false: injected, or selective completion; only a failure is reported

  static constexpr std::size_t kBytesMax = 4096;
};
static_assert(ShortSend::kBytesMax <= Geometry::kArenaMin / 8, "it always fits into one segment");

class FastLane : protocol::MessengerParts {
 public:
  /// Tests set `enabled` to false to compare the lane with the general road.
  FastLane(protocol::Messenger& messenger, bool enabled)
      : MessengerParts(messenger.parts()), enabled_(enabled) {}

  bool enabled() const { return enabled_; }
  /// Decides where all later arrivals are reported. Called when the endpoint's bindings have changed.
  void attach();
  static void close(Peer& peer) { peer.lane = nullptr; }
  /// Opens the peer's lane, which must be closed, if nothing stands in the way.
  void review(LocalPeer& peer) const;

  /// Sends the message. Returns false if the lane cannot take the message; then it has done nothing.
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

  /// Posts a receive; a null `from` means any sender. Returns false if it has done nothing. A kept request
  /// differs from a new one only in the fields that its last message may have changed; post() sets these.
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
    left,     ///< no receive waits for the message yet: it stays in the ring for some looks
    refused,  ///< the message is not for the lane, and nothing has been done
  };
  /// Delivers the next message of the peer's ring. The ring must hold one.
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
  static constexpr std::uint8_t kPatience = 16;  ///< looks

  /// Delivers the message to a receive other than the oldest, or stores it. Reads the message from the ring
  /// again, so that the common path can keep it in registers.
  template <typename Read>
  [[gnu::noinline]] Outcome receive_later(LocalPeer& peer, Read& read) {
    ShortMessage message;
    if (!peer.ring->peek_short(message)) return Outcome::refused;
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
    if (rx_queue_ == nullptr || !takes(receive, header.length) ||
        !channel.credit.pass(header.length, ahead_)) {
      return false;
    }
    std::byte* const buffer = receive.buffers()[0].data();
    copy_short(buffer, message.payload, header.length);
    place == Place::oldest ? queue.withdraw_oldest() : queue.withdraw(receive);
    const protocol::Context& context = context_;
    const auto arrival = [&]() -> protocol::Success {
      return {.context = receive.context,
              .kind = protocol::Completion::Kind::receive,
              .tagged = header.tagged,
              .has_data = header.has_data,
              .tag = header.tag,
              .data = header.data,
              .buffer = buffer,
              .length = header.length,
              .source = context.bindings.want_source ? context.handles.handle_of(channel)
                                                     : protocol::kAddrNotAvail};
    };
    if (direct) [[likely]] {
      read.take(arrival());
    } else {
      queue_arrival(arrival());
    }
    ++context.counters.fast_received;
    context.counters.bytes_received += header.length;
    peer.patience = kPatience;
    pulls_.pool().keep(receive);
    peer.ring->pop();
    return true;
  }
  /// True if the receive is long enough and plain: for one message, in one buffer, with an ordinary
  /// completion.
  static bool takes(const protocol::RecvRequest& receive, std::size_t length) {
    return receive.plain && length <= receive.capacity;
  }
  /// Stores a message that no receive waits for. Returns false if it has done nothing.
  bool store(LocalPeer& peer, const ShortMessage& message) const;
  /// Queues the completion. Needed if the caller does not read this queue, or if other completions come
  /// first.
  [[gnu::noinline]] void queue_arrival(const protocol::Success& arrival) const {
    rx_queue_->push_success(arrival);
  }

  bool enabled_;
  /// While a peer has a grant of more than this beyond what was released, this side need not grant more.
  const std::uint64_t ahead_ = context_.settings.eager_credit - context_.settings.eager_credit / 4;
  /// Where arrivals are reported. Null if the endpoint reports them elsewhere, too.
  protocol::CompletionQueue* rx_queue_ = nullptr;
};

}  // namespace cluster::shm
