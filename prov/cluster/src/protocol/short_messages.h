// What the two lanes for short messages (shm/fast_lane.h, reliability/frame_lane.h) share on the side of the
// receiver, and the protocol's part of the frame lane, for messages. That part sends a short message if
// nothing has to be posted before the message. It delivers a short message if a receive waits for the
// message. Otherwise one of the functions send(), receive_for() and charge() returns false or null and
// changes nothing, and the message takes the general path (EagerProtocol).
#pragma once

#include "base/bytes.h"
#include "protocol/messenger.h"

namespace cluster::protocol {

class ShortArrivals : protected MessengerParts {
 public:
  /// Decides in which queue arrivals are reported. Must be called after each change of the endpoint's
  /// bindings.
  void attach() {
    const EndpointBindings& bindings = context_.bindings;
    const bool plain = bindings.receive_counter == nullptr && !bindings.report_unknown_source;
    rx_queue_ = plain ? bindings.rx_queue : nullptr;
  }

 protected:
  explicit ShortArrivals(const Messenger& messenger) : MessengerParts(messenger.parts()) {}

  /// Returns true if the receive is long enough and plain. A plain receive is for one message, has one
  /// buffer, and reports its completion.
  static bool takes(const RecvRequest& receive, std::size_t length) {
    return receive.plain && length <= receive.capacity;
  }
  /// Returns false if this side would have to advertise credit after a message of this length, or if the
  /// message exceeds the peer's credit. Otherwise charges the message.
  bool charge(Channel& channel, std::size_t length) const { return channel.credit.pass(length, ahead_); }
  /// Returns the completion of a receive whose message is in `buffer`.
  Success completion_of(const RecvRequest& receive, const Channel& channel, const wire::EagerHeader& header,
                        std::byte* buffer) const {
    return {.context = receive.context,
            .kind = Completion::Kind::receive,
            .tagged = header.tagged,
            .has_data = header.has_data,
            .tag = header.tag,
            .data = header.data,
            .buffer = buffer,
            .length = header.length,
            .source = context_.bindings.want_source ? context_.handles.source_of(channel) : kAddrNotAvail};
  }

  /// The queue in which arrivals are reported. Null if the endpoint has no such queue, if it counts receives,
  /// or if it reports unknown senders.
  CompletionQueue* rx_queue_ = nullptr;

 private:
  /// This side need not grant a peer more credit while Credit::granted exceeds Credit::released by more than
  /// this number.
  const std::uint64_t ahead_ = context_.settings.eager_credit - context_.settings.eager_credit / 4;
};

class ShortMessages : public ShortArrivals {
 public:
  explicit ShortMessages(const Messenger& messenger) : ShortArrivals(messenger) {}

  /// Returns the queue in which arrivals are reported. If it is null, deliver() must not be called.
  CompletionQueue* rx_queue() const { return rx_queue_; }

  /// Sends the message by post(token). If the carrier does not take the message, post() returns false. The
  /// message is complete when the transport reports the token. Returns false if the message was not sent.
  template <typename Post>
  bool send(Channel& channel, const ShortSend& message, Post&& post) {
    const std::size_t length = message.header.length;
    const bool first = channel.tx.empty() && channel.rma.writes_announced == 0 && channel.rma.reads == 0;
    if (!first || length > channel.eager_max || !channel.credit.covers(length) || outgoing_.left() == 0 ||
        message.completion_level != CompletionLevel::transmit) [[unlikely]] {
      return false;
    }
    SendRequest& request = outgoing_.acquire_posted(channel, message);
    if (!post(OutgoingRequests::token_of(request))) [[unlikely]] {
      outgoing_.withdraw(request);
      return false;
    }
    channel.credit.charge(length);
    Counters& counters = context_.counters;
    ++counters.fast_sent;
    ++counters.eager_sent;
    counters.bytes_sent += length;
    return true;
  }

  /// Returns the receive to which deliver() can deliver this message, or null if there is none.
  RecvRequest* receive_for(const Channel& channel, const wire::EagerHeader& header) {
    MatchQueue& queue = matcher_.queues().application(header.tagged);
    RecvRequest* receive = queue.match_oldest(&channel, header.tag);
    if (receive == nullptr) receive = queue.match_among_few(&channel, header.tag).receive;
    const bool suits = receive != nullptr && takes(*receive, header.length);
    return suits && rx_queue_ != nullptr && !channel.assembly.active() ? receive : nullptr;
  }
  /// If this returns true, the caller must call deliver().
  bool charge(Channel& channel, const wire::EagerHeader& header) const {
    return ShortArrivals::charge(channel, header.length);
  }
  /// Delivers the message to the receive, and returns the completion of the receive. The caller must report
  /// the completion.
  Success deliver(Channel& channel, RecvRequest& receive, const wire::EagerHeader& header,
                  const std::byte* payload) {
    std::byte* const buffer = receive.buffers()[0].data();
    copy_short(buffer, payload, header.length);
    matcher_.queues().application(header.tagged).withdraw(receive);
    ++context_.counters.fast_received;
    context_.counters.bytes_received += header.length;
    const Success arrival = completion_of(receive, channel, header, buffer);
    pulls_.pool().keep(receive);
    return arrival;
  }
};

}  // namespace cluster::protocol
