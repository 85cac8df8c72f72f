// Large messages. The sender announces, the receiver pulls as much at a time as its budget over all
// senders allows, the bytes land at their offset in whatever order they come, and `done` ends it.
// Many senders can so never overrun one receiver (Homa's and CLIC's argument), and nothing is copied
// but from the arrival to the user's buffer.
#include <algorithm>

#include "protocol/messenger.h"

namespace cluster::protocol {
namespace {

/// One pull asks for so much; so many of them may be under way for one message.
constexpr std::size_t kPullBytes = 256 * 1024;
constexpr std::size_t kPullsUnderWay = 4;
static_assert(kPullsUnderWay < kPullsMax, "one more may be half posted at the sender");

}  // namespace

void Messenger::on_announce(Channel& channel, const wire::Segment& segment) {
  ReceiveRequest* receive = queue(segment.tagged()).match(&channel, segment.tag);
  if (receive == nullptr) {
    Unexpected* message = store(channel, segment, segment.total);
    if (message == nullptr) return refuse();
    message->announced = true;
    return;
  }
  receive->channel = &channel;
  receive->tag = segment.tag;
  receive->data = segment.data;
  receive->has_data = segment.has_data();
  receive->sender_id = segment.id;
  receive->total = segment.total;
  start_pulling(*receive);
}

void Messenger::start_pulling(ReceiveRequest& receive) {
  receive.wanted = std::min(receive.total, receive.capacity);
  if (receive.wanted == 0) {
    confirm(*receive.channel, receive.sender_id);
    return complete(receive, Fault::none);
  }
  receive.channel->receives.push_back(receive);
  pulling_.push_back(receive);
  schedule_pulls();
}

/// Hands the free budget out in turns, one pull per message and turn.
void Messenger::schedule_pulls() {
  ReceiveRequest* receive = pulling_.front();
  while (receive != nullptr && pulled_out_ + kPullBytes <= std::max(settings_.pull_window, kPullBytes)) {
    ReceiveRequest* next = pulling_.after(*receive);
    const std::size_t under_way = receive->requested - receive->arrived;
    if (under_way + kPullBytes <= kPullsUnderWay * kPullBytes) {
      wire::Segment pull;
      pull.kind = wire::SegmentKind::pull;
      pull.id = receive->sender_id;
      pull.peer_id = receive->id;
      pull.offset = receive->requested;
      pull.total = std::min(kPullBytes, receive->wanted - receive->requested);
      receive->requested += pull.total;
      pulled_out_ += pull.total;
      pulling_.remove(*receive);
      if (receive->requested < receive->wanted) {
        pulling_.push_back(*receive);
        if (next == nullptr) next = receive;
      }
      say(*receive->channel, pull);
    }
    receive = next;
  }
}

void Messenger::on_pull(Channel& channel, const wire::Segment& segment) {
  SendRequest* request = sends_.find(segment.id);
  const bool known = request != nullptr && request->channel == &channel &&
                     request->state == SendRequest::State::announced && !request->done;
  const bool sane = known && segment.total > 0 && segment.offset <= request->length &&
                    segment.total <= request->length - segment.offset && request->pull_count < kPullsMax;
  if (!sane) return refuse();
  request->receiver_id = segment.peer_id;
  request->pulls[request->pull_count++] = {segment.offset, segment.offset + segment.total};
  if (!channel.streaming.contains(*request)) channel.streaming.push_back(*request);
  mark_busy(channel);
}

/// Posts one pull's worth of the request at the head, then lets the next have its turn. False if
/// the carrier has no room.
bool Messenger::stream(SendRequest& request) {
  Channel& channel = *request.channel;
  Carrier& carrier = *channel.carrier;
  PullRange& range = request.pulls[0];
  while (range.offset < range.end) {
    wire::Segment segment;
    segment.kind = wire::SegmentKind::bulk;
    segment.peer_id = request.receiver_id;
    segment.offset = range.offset;
    const std::size_t part = std::min<std::size_t>(range.end - range.offset, carrier.payload_max(segment));
    if (part == 0) return false;
    segment.length = static_cast<std::uint32_t>(part);
    const Token token = carrier.immediate() ? 0 : Token{1} << 32 | request.id;
    if (!carrier.post(segment, {request.payload(), range.offset, part}, Hold::reference, token)) return false;
    if (token != 0) ++request.tokens;
    range.offset += part;
  }
  std::move(request.pulls.begin() + 1, request.pulls.begin() + request.pull_count, request.pulls.begin());
  --request.pull_count;
  channel.streaming.remove(request);
  if (request.pull_count > 0) channel.streaming.push_back(request);
  return true;
}

void Messenger::on_bulk(Channel& channel, const wire::Segment& segment, ConstBytes payload) {
  ReceiveRequest* receive = receives_.find(segment.peer_id);
  const bool known = receive != nullptr && receive->channel == &channel && receive->requested > 0;
  const bool sane = known && segment.offset <= receive->requested &&
                    payload.size() <= receive->requested - segment.offset &&
                    payload.size() <= receive->requested - receive->arrived;
  if (!sane) return refuse();
  scatter(receive->buffers(), segment.offset, payload);
  receive->arrived += payload.size();
  pulled_out_ -= payload.size();
  if (receive->arrived == receive->wanted) {
    confirm(channel, receive->sender_id);
    complete(*receive, Fault::none);
  }
  if (!pulling_.empty()) schedule_pulls();
}

void Messenger::on_done(Channel& channel, const wire::Segment& segment) {
  SendRequest* request = sends_.find(segment.id);
  const bool known = request != nullptr && request->channel == &channel && !request->done &&
                     request->state != SendRequest::State::queued;
  if (!known) return refuse();
  request->done = true;
  if (channel.streaming.contains(*request)) {
    channel.streaming.remove(*request);
    request->pull_count = 0;
  }
  settle(*request);
}

}  // namespace cluster::protocol
