#include "sim/oracle.h"

#include <algorithm>

#include "sim/frame_text.h"

namespace cluster::sim {
namespace {

using State = Message::State;
using protocol::Completion;

std::string text_of(const Completion& completion) {
  return std::string(describe(completion.status)) + ", length " + std::to_string(completion.length) +
         ", lost " + std::to_string(completion.lost) + ", source " + std::to_string(completion.source);
}

std::uint32_t serial_of(std::uint64_t tag) { return static_cast<std::uint32_t>(tag); }

std::string text(const Message& message) {
  return "message " + std::to_string(message.number) + " from host " + std::to_string(message.from) +
         " (incarnation " + std::to_string(message.from_incarnation) + ") to host " +
         std::to_string(message.to) + ", length " + std::to_string(message.length) +
         (message.tagged ? ", tag " : ", untagged ") + std::to_string(message.tag) + ", order " +
         std::to_string(message.order) + ", state " + std::to_string(static_cast<int>(message.state)) +
         ", arrived in incarnation " + std::to_string(message.arrived_incarnation) +
         ", received in incarnation " + std::to_string(message.received_incarnation);
}

[[noreturn]] void fail(const std::string& what, const Message& message) {
  throw SafetyFailure(what + ": " + text(message));
}

}  // namespace

std::uint64_t tag_of(HostNumber from, HostNumber to, std::uint32_t serial) {
  return std::uint64_t{from} << 48 | std::uint64_t{to} << 32 | serial;
}

Oracle::Oracle(std::size_t hosts) : incarnations_(hosts), open_(hosts) {}

Message& Oracle::compose(Message shape) {
  shape.number = messages_.size() + 1;
  shape.from_incarnation = incarnations_.of(shape.from);
  if (shape.has_data) shape.data = shape.number;
  if (shape.tagged) {
    Lane& lane = lanes_[{shape.from, shape.to}];
    shape.tag = tag_of(shape.from, shape.to, lane.tags);
    lane.by_tag[lane.tags++] = shape.number;
  }
  messages_.push_back(shape);
  return messages_.back();
}

void Oracle::accepted(MessageNumber number) {
  Message& message = messages_[number - 1];
  message.started = incarnations_.begin(message.from, message.to);
  message.order = lanes_[{message.from, message.to}].orders[message.tagged ? 1 : 0]++;
  message.state = message.reported ? State::under_way : State::silent;
  open_[message.to].push_back(number);
}

void Oracle::send_ended(const Completion& completion) {
  const auto number = reinterpret_cast<MessageNumber>(completion.context);
  if (number == 0 || number > messages_.size()) {
    throw SafetyFailure("a send completed that never was: context " + std::to_string(number));
  }
  Message& message = messages_[number - 1];
  const bool expected = message.state == State::under_way ||
                        (message.state == State::silent && completion.status != Status::ok);
  if (!expected)
    fail("a send completed twice, or without having been taken (" + text_of(completion) + ")", message);
  if (completion.tagged != message.tagged || completion.tag != message.tag) {
    fail("a send completed as another", message);
  }
  if (completion.status != Status::ok) {
    ++totals_.failures;
    message.state = State::failed;
    if (message.datagram || !incarnations_.operation_failed(message.from, message.to, message.started)) {
      fail("a send failed without cause (" + text_of(completion) + ")", message);
    }
    return;
  }
  message.state = State::succeeded;
  const bool with_peer = message.from == message.to || message.arrived_incarnation != 0 ||
                         message.received_incarnation != 0 || message.discarded_incarnation != 0;
  if (message.completion_level != protocol::CompletionLevel::inject && !with_peer) {
    fail("a send completed before the peer had the message", message);
  }
}

Message* Oracle::find(bool has_data, std::uint64_t data, bool tagged, std::uint64_t tag, ConstBytes content) {
  MessageNumber number = 0;
  if (has_data) {
    number = data;
  } else if (content.size() >= kNumberedFrom) {
    number = number_in(content);
  } else if (tagged) {
    const auto lane =
        lanes_.find({static_cast<HostNumber>(tag >> 48), static_cast<HostNumber>(tag >> 32 & 0xFFFF)});
    if (lane == lanes_.end()) return nullptr;
    const auto found = lane->second.by_tag.find(serial_of(tag));
    number = found == lane->second.by_tag.end() ? 0 : found->second;
  }
  return number == 0 || number > messages_.size() ? nullptr : &messages_[number - 1];
}

Message& Oracle::identify(const Receive& receive, const Completion& completion, ConstBytes content) {
  Message* message = find(completion.has_data, completion.data, completion.tagged, completion.tag, content);
  if (message == nullptr) throw SafetyFailure("received what was never sent (" + text_of(completion) + ")");
  if (message->state == State::composed) fail("received a message that was never taken", *message);
  if (message->to != receive.host) fail("received by host " + std::to_string(receive.host), *message);
  if (completion.source != message->from) fail("received as if from " + text_of(completion), *message);
  if (message->tagged != receive.tagged || completion.tagged != receive.tagged) {
    fail("a tagged and an untagged operation met", *message);
  }
  if (completion.tag != message->tag || completion.has_data != message->has_data ||
      (message->has_data && completion.data != message->data)) {
    fail("received with another tag or data", *message);
  }
  if (message->discarded_incarnation == receive.incarnation)
    fail("received after it had been discarded", *message);
  const bool again = message->datagram ? message->deliveries >= message->arrivals
                                       : message->received_incarnation == receive.incarnation;
  if (again) fail("received more often than it came", *message);
  return *message;
}

void Oracle::match(const Receive& receive, const Message& message) {
  MatchCriteria criteria{receive.from == protocol::kAddrUnspec || receive.from == message.from, receive.tag,
                         receive.ignore};
  if (!receive.tagged) criteria.ignore = ~std::uint64_t{0};
  if (!criteria.accepts(message.tag)) fail("matched a receive that does not take it", message);
  // The order of messages to an earlier incarnation is not judged. They came in late copies of frames,
  // perhaps of two sessions that have both ended. Each session keeps its order, but a receiver that knows
  // neither session cannot order the two.
  if (message.started.incarnation != receive.incarnation) return;
  std::uint64_t lane = mix64(std::uint64_t{message.from} << 32 | message.to);
  lane = mix64(lane ^ std::uint64_t{message.from_incarnation} << 32 ^ receive.incarnation);
  MatchOrder::Match other{};
  const MatchOrder::Match match{message.order, receive.position, message.tag, criteria};
  if (order_.note(lane ^ (message.tagged ? 1 : 0), match, other)) return;
  fail("matched out of order (receive " + std::to_string(receive.position) + "; message of order " +
           std::to_string(other.message) + " went to receive " + std::to_string(other.position) + ")",
       message);
}

const Message& Oracle::received(const Receive& receive, const Completion& completion, ConstBytes content) {
  Message& message =
      identify(receive, completion, content.first(std::min(content.size(), completion.length)));
  const bool fits = message.length <= receive.capacity;
  const std::size_t length = fits ? message.length : receive.capacity;
  // `lost` has a meaning for failures only. A success does not set it (protocol/completion.h: push_success).
  const bool lost_right = fits || completion.lost == message.length - length;
  if (completion.status != (fits ? Status::ok : Status::truncated) || completion.length != length ||
      !lost_right) {
    fail("received with a wrong length (" + text_of(completion) + ")", message);
  }
  if (const std::size_t wrong = first_wrong_byte(message.number, content.first(length)); wrong != length) {
    fail("received with a wrong byte at " + std::to_string(wrong), message);
  }
  if (!receive.claimed && !message.datagram) match(receive, message);
  if (message.datagram) {
    ++message.deliveries;
    ++totals_.datagram_deliveries;
  }
  message.received_incarnation = receive.incarnation;
  ++totals_.delivered;
  totals_.delivered_bytes += length;
  return message;
}

const Message& Oracle::peeked(const Receive& peek, const Completion& completion, PeekEffect effect) {
  Message& message = identify(peek, completion, {});
  if (completion.length != message.length) fail("peeked with a wrong length", message);
  message.peeked_incarnation = peek.incarnation;
  if (effect != PeekEffect::stays) match(peek, message);
  if (effect == PeekEffect::gone) dropped(message);
  return message;
}

void Oracle::dropped(Message& message) {
  message.discarded_incarnation = incarnations_.of(message.to);
  ++totals_.delivered;
}

void Oracle::claimed_message_missing(MessageNumber number) const {
  fail("a message is gone that was claimed", messages_[number - 1]);
}

/// Returns true if the receive may have ended in the place of a message that had begun to arrive when the
/// session with its sender ended. `has_other_cause`: the receive may have failed for another reason. In this
/// case the message may also end another receive.
bool Oracle::takes_lost_message(const Receive& receive, const Completion& failure, HostNumber from,
                                bool has_other_cause) {
  const auto is_lost = [&](const Message& message) {
    const bool same = message.from == from && message.to == receive.host &&
                      message.tagged == failure.tagged && message.has_data == failure.has_data &&
                      (!message.tagged || message.tag == failure.tag) &&
                      (!message.has_data || message.data == failure.data);
    if (!same || message.received_incarnation == receive.incarnation ||
        message.discarded_incarnation == receive.incarnation ||
        message.lost_incarnation == receive.incarnation)
      return false;
    return message.state == State::failed || message.state == State::abandoned ||
           message.from_incarnation != incarnations_.of(from) ||
           incarnations_.error_permitted(from, message.to, message.started);
  };
  auto message = std::ranges::find_if(messages_, [&](const Message& candidate) {
    return candidate.perhaps_lost_incarnation != receive.incarnation && is_lost(candidate);
  });
  if (message == messages_.end()) message = std::ranges::find_if(messages_, is_lost);
  if (message == messages_.end()) return false;
  (has_other_cause ? message->perhaps_lost_incarnation : message->lost_incarnation) = receive.incarnation;
  return true;
}

void Oracle::receive_failed(const Receive& receive, const Completion& completion) {
  if (completion.status == Status::canceled && receive.cancelled) return;
  ++totals_.failures;
  const bool peer_known = !completion.peer.empty();
  const HostNumber peer = peer_known ? host_of(completion.peer) : 0;
  const bool lost_peer = completion.status == Status::reset || completion.status == Status::unreachable ||
                         completion.status == Status::refused || completion.status == Status::ended;
  // The completion does not name the incarnation of the peer, so any change of incarnations permits the
  // error.
  const bool permitted =
      lost_peer && peer_known &&
      incarnations_.operation_failed(receive.host, peer, {kFirstIncarnation, receive.started});
  const bool in_place_of_message =
      lost_peer && peer_known && takes_lost_message(receive, completion, peer, permitted);
  if (permitted || in_place_of_message) return;
  throw SafetyFailure("a receive of host " + std::to_string(receive.host) + " failed without cause (" +
                      text_of(completion) + ", peer " + completion.peer.text() + ")");
}

void Oracle::incarnation_ends(HostNumber host) {
  incarnations_.ends(host);
  for (Message& message : messages_) {
    if (message.from != host || message.from_incarnation != incarnations_.of(host)) continue;
    const bool pending =
        message.state == State::under_way || message.state == State::silent ||
        message.state == State::composed ||
        (message.state == State::succeeded && message.completion_level == protocol::CompletionLevel::inject);
    if (pending) message.state = State::abandoned;
  }
}

void Oracle::frame_read(HostNumber at, const Packet& packet, const wire::FrameView& view, Time now) {
  if (view.kind == wire::FrameKind::datagram) return datagram_read(at, view);
  if (view.kind != wire::FrameKind::flow && view.kind != wire::FrameKind::fin) return;
  if (!incarnations_.frame_read(at, packet, view, now)) return;
  const bool stale = incarnations_.is_stale(at, packet);
  wire::FrameView whole = view;
  if (view.in_part() && !parts_[{at, view.session, view.sequence.value}].complete(whole)) return;
  each_segment(whole.segments, [&](const wire::Segment& segment, ConstBytes payload) {
    using wire::SegmentKind;
    if (segment.kind != SegmentKind::eager && segment.kind != SegmentKind::eager_first) return;
    Message* message = find(segment.has_data(), segment.data, segment.tagged(), segment.tag, payload);
    // A late copy of a message that arrived long ago is no arrival.
    const bool over = message != nullptr && message->arrived_incarnation != 0 &&
                      (stale || message->state == State::succeeded);
    if (message != nullptr && message->to == at && !over) message->arrived_incarnation = incarnations_.of(at);
  });
}

/// Counts a datagram that an engine reads. Each copy of a datagram may go to one receive.
void Oracle::datagram_read(HostNumber at, const wire::FrameView& view) {
  each_segment(view.segments, [&](const wire::Segment& segment, ConstBytes payload) {
    Message* message = find(segment.has_data(), segment.data, false, 0, payload);
    if (message == nullptr || message->to != at) return;
    ++message->arrivals;
    ++totals_.datagram_arrivals;
  });
}

bool Oracle::must_arrive(const Message& message) const {
  if (message.datagram) return false;
  if (message.received_incarnation != 0 || message.discarded_incarnation != 0 ||
      !incarnations_.alive(message.to))
    return false;
  switch (message.state) {
    case State::under_way: return true;
    case State::silent: return !incarnations_.error_permitted(message.from, message.to, message.started);
    case State::succeeded:
      if (message.completion_level == protocol::CompletionLevel::inject) {
        return !incarnations_.error_permitted(message.from, message.to, message.started);
      }
      return message.arrived_incarnation == incarnations_.of(message.to);
    default: return false;
  }
}

std::size_t Oracle::undelivered(HostNumber host, bool tagged) {
  std::vector<MessageNumber>& open = open_[host];
  std::erase_if(open, [this](MessageNumber number) {
    const Message& message = messages_[number - 1];
    return message.received_incarnation != 0 || message.discarded_incarnation != 0 ||
           message.state == State::failed || message.state == State::abandoned;
  });
  return static_cast<std::size_t>(std::count_if(open.begin(), open.end(), [&](MessageNumber number) {
    const Message& message = messages_[number - 1];
    return message.tagged == tagged && must_arrive(message);
  }));
}

void Oracle::check_complete() {
  for (const Message& message : messages_) {
    if (message.state == State::under_way) throw LivenessFailure("a send never ended: " + text(message));
    if (must_arrive(message)) fail("a message was lost", message);
    const std::uint32_t found = message.peeked_incarnation;
    const bool ended = message.received_incarnation == found || message.discarded_incarnation == found ||
                       message.lost_incarnation == found || message.perhaps_lost_incarnation == found;
    if (found != 0 && found == incarnations_.of(message.to) && incarnations_.alive(message.to) && !ended)
      fail("a message that a peek had found is gone without a word", message);
  }
}

std::string Oracle::unfinished() const {
  constexpr std::size_t shown_max = 3;
  std::string shown;
  std::size_t count = 0;
  for (const Message& message : messages_) {
    if (message.state != State::under_way && !must_arrive(message)) continue;
    if (count++ < shown_max) shown += "; " + text(message);
  }
  return std::to_string(count) + " messages are awaited" + shown;
}

}  // namespace cluster::sim
