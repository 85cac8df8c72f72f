// Small messages arrive. Their parts come in order and undisturbed, so one message at most is being
// assembled per channel: straight into its receive if one is posted, else into the store.
#include "base/short_copy.h"
#include "protocol/messenger.h"

namespace cluster::protocol {
namespace {

/// One peer's part of the store; far more than credit and an honest sender's announcements come to.
constexpr std::size_t kPartOfOne = 8;
/// All strangers together get half, so that friends always find room.
constexpr std::size_t kPartOfStrangers = 2;

}  // namespace

void Messenger::on_eager(Channel& channel, const wire::Segment& segment, ConstBytes payload) {
  const bool whole = segment.kind == wire::SegmentKind::eager;
  const std::uint64_t total = whole ? payload.size() : segment.total;
  const bool interrupted = channel.assembling != nullptr || channel.assembling_unexpected != nullptr;
  // A sender never charges beyond what it was given, and never begins a message within another.
  const bool covered = total <= channel.credit_given &&
                       channel.charged_by_peer + total + kMessageCharge <= channel.credit_given;
  if (interrupted || total < payload.size() || !covered) return refuse();
  channel.charged_by_peer += total + kMessageCharge;
  if (RecvRequest* receive = match(channel, segment.tagged(), segment.tag, total)) {
    receive->channel = &channel;
    receive->tag = segment.tag;
    receive->data = segment.data;
    receive->has_data = segment.has_data();
    receive->confirm = segment.confirm();
    receive->sender_id = segment.id;
    receive->total = total;
    receive->arrived = payload.size();
    scatter_short(receive->buffers(), payload);
    if (whole && !receive->confirm && receive->buffer == nullptr) [[likely]] {
      release(channel, total + kMessageCharge);
      report_message(*receive, Status::ok);
      return receives_.release(*receive);
    }
    channel.assembling = receive;
  } else {
    UnexpectedMessage* message = store(channel, segment, total);
    if (message == nullptr) return refuse();
    message->charge = total + kMessageCharge;
    keep_bytes(*message);
    if (!payload.empty()) std::memcpy(message->bytes.get(), payload.data(), payload.size());
    message->arrived = payload.size();
    channel.assembling_unexpected = message;
  }
  if (payload.size() == total) assembled(channel);
}

void Messenger::on_eager_next(Channel& channel, ConstBytes payload) {
  if (RecvRequest* receive = channel.assembling) {
    if (payload.size() > receive->total - receive->arrived) return refuse();
    scatter(receive->buffers(), receive->arrived, payload);
    receive->arrived += payload.size();
    if (receive->arrived == receive->total) assembled(channel);
  } else if (UnexpectedMessage* message = channel.assembling_unexpected) {
    if (payload.size() > message->total - message->arrived) return refuse();
    if (!payload.empty())
      std::memcpy(message->bytes.get() + message->arrived, payload.data(), payload.size());
    message->arrived += payload.size();
    if (message->arrived == message->total) assembled(channel);
  } else {
    refuse();
  }
}

UnexpectedMessage* Messenger::store(Channel& channel, const wire::Segment& segment, std::size_t total) {
  UnexpectedMessage* message = messages_.acquire();
  if (message == nullptr) return nullptr;
  message->channel = &channel;
  message->tag = segment.tag;
  message->data = segment.data;
  message->tagged = segment.tagged();
  message->has_data = segment.has_data();
  message->confirm = segment.confirm();
  message->sender_id = segment.id;
  message->total = total;
  queue(message->tagged).store(*message);
  channel.unexpected.push_back(*message);
  ++channel.stored;
  ++counters_.unexpected;
  note_store();
  return message;
}

/// Room for a stored message's own.
void Messenger::keep_bytes(UnexpectedMessage& message) {
  if (message.total == 0) return;
  message.bytes = std::make_unique_for_overwrite<std::byte[]>(message.total);
  unexpected_bytes_ += message.total;
  note_store();
}

/// The store has lost or won a message. Below the smallest part of it nobody needs to be looked at.
void Messenger::note_store() {
  scarce_ = messages_.alive() >= settings_.unexpected_max / kPartOfOne ||
            unexpected_bytes_ >= settings_.unexpected_bytes_max / kPartOfStrangers;
}

bool Messenger::ready_though_scarce(const Channel& channel, const wire::Segment& segment) {
  using wire::SegmentKind;
  const bool begins = segment.kind == SegmentKind::eager || segment.kind == SegmentKind::eager_first ||
                      segment.kind == SegmentKind::announce;
  if (!begins) return true;
  const std::size_t part = directory_.handle_of(channel) == kAddrNotAvail ? kPartOfStrangers : 1;
  const bool room = messages_.alive() < settings_.unexpected_max / part &&
                    unexpected_bytes_ < settings_.unexpected_bytes_max / part &&
                    channel.stored < settings_.unexpected_max / kPartOfOne;
  // What it owes us may lie behind this message: whoever made it wait for a receive could wait for itself.
  const bool owes = channel.waits() && messages_.alive() < settings_.unexpected_hard_max / part;
  return room || owes || queue(segment.tagged()).would_match(&channel, segment.tag);
}

/// The last part of a message is here.
void Messenger::assembled(Channel& channel) {
  if (RecvRequest* receive = channel.assembling) {
    channel.assembling = nullptr;
    if (receive->confirm) confirm(channel, receive->sender_id);
    release(channel, receive->total + kMessageCharge);
    complete(*receive, Status::ok);
    return;
  }
  UnexpectedMessage* message = channel.assembling_unexpected;
  channel.assembling_unexpected = nullptr;
  if (message->confirm) confirm(channel, message->sender_id);
  message->confirm = false;
  if (message->taker != nullptr) return hand_over(*message->taker, *message);
  if (message->discarded) discard(*message);
}

/// A message has left the store (or never entered it): what it was charged may be used again. Said
/// in steps, so that a credit segment travels once per many messages.
void Messenger::release(Channel& channel, std::uint64_t charge) {
  channel.released += charge;
  const std::uint64_t limit = channel.released + settings_.eager_credit;
  if (limit < channel.credit_given + settings_.eager_credit / 4) return;
  channel.credit_given = limit;
  remind(channel);
}

void Messenger::remind(Channel& channel) {
  wire::Segment segment;
  segment.kind = wire::SegmentKind::credit;
  segment.total = channel.credit_given;
  say(channel, segment);
}

void Messenger::on_credit(Channel& channel, const wire::Segment& segment) {
  // Credits may overtake each other: the largest one holds.
  if (segment.total > channel.credit_limit) channel.credit_limit = segment.total;
}

}  // namespace cluster::protocol
