// Large messages between processes of one node: copied once, by both processes at the same time.
//
// Where the kernel lets two processes reach each other's memory (Channel::memory), an announcement
// says where the message lies, and a pull where its bytes belong. The sender answers such a pull by
// writing them there (`placed` tells), beginning at the front; the receiver meanwhile fetches from the
// back, a piece a turn, until the two meet. Either core so copies what it has time for, and a sender
// that is not in the library costs no more than the one piece it was asked for. (The idea of a single
// copy by the receiver is KNEM's and the MPI libraries'; that both ends copy is ours: limits.md A4.)
//
// All of it is an offer: who cannot write answers with bulk, who cannot read pulls everything.
//
// A peer may write only while the receive waits in `direct_`. It looks whether this side is still
// there before each piece, and the engine does not close while the list holds anything, so memory
// that has been given back to the application is not written to. RegionTable are never offered: they may
// be closed at any time, and no peer can ask for their lock.
#include <algorithm>

#include "protocol/messenger.h"

namespace cluster::protocol {
namespace {

/// What the sender is asked to write at a time, and what the receiver fetches in a turn. Small enough that
/// both end together and others get their turn, large enough that the calls do not count (measured:
/// a call costs about 0.4 us, a piece 3 to 6 us).
constexpr std::size_t kPlaceBytes = 128 * 1024;
constexpr std::size_t kFetchBytes = 64 * 1024;
/// Less is not worth asking the sender for: it would answer later than it takes to fetch it.
constexpr std::size_t kPlaceMin = 8 * 1024;
constexpr std::size_t kPageBytes = 4096;

/// Where position `offset` of the buffers lies if `length` bytes follow each other there, else 0.
std::uint64_t address_of(std::span<const Bytes> buffers, std::size_t offset, std::size_t length) {
  for (const Bytes& buffer : buffers) {
    if (offset < buffer.size()) {
      const bool whole = length <= buffer.size() - offset;
      return whole ? reinterpret_cast<std::uintptr_t>(buffer.data()) + offset : 0;
    }
    offset -= buffer.size();
  }
  return 0;
}

}  // namespace

/// Tells where a message to be announced lies, if that is one place and the peer could read it.
void Messenger::offer_memory(const SendRequest& request, wire::Segment& announcement) {
  if (request.channel->memory == nullptr || request.payload().size() != 1) return;
  announcement.flags |= wire::segment_flag::kAddress;
  announcement.address = reinterpret_cast<std::uintptr_t>(request.payload()[0].data()) + request.base;
}

/// Begins to take a message in by both ways, if it was offered.
void Messenger::begin_direct(RecvRequest& receive) {
  if (receive.source == 0 || receive.channel->memory == nullptr) receive.source = 0;
  if (receive.source != 0) direct_.push_back(receive);
}

/// What the sender is asked for next: half of what is left, so that both are busy to the end.
std::size_t Messenger::next_place(const RecvRequest& receive) {
  const std::size_t left = receive.end - receive.requested;
  const std::size_t half = (left / 2 + kPageBytes - 1) / kPageBytes * kPageBytes;
  const std::size_t under_way = receive.requested - receive.arrived;
  const std::size_t allowed = left > 4 * kPlaceBytes ? 2 * kPlaceBytes : 1;
  if (half < kPlaceMin || under_way >= allowed) return 0;
  return std::min(half, kPlaceBytes);
}

void Messenger::offer_place(const RecvRequest& receive, wire::Segment& pull) {
  pull.address = address_of(receive.buffers(), receive.base + pull.offset, pull.total);
  if (pull.address != 0) pull.flags |= wire::segment_flag::kAddress;
}

/// One piece for each receive that has something left to fetch.
void Messenger::fetch() {
  for (RecvRequest* receive = direct_.front(); receive != nullptr;) {
    RecvRequest* next = direct_.after(*receive);
    if (receive->end > receive->requested && receive->source != 0) fetch_piece(*receive);
    receive = next;
  }
}

void Messenger::fetch_piece(RecvRequest& receive) {
  Channel& channel = *receive.channel;
  const std::size_t length = std::min(kFetchBytes, receive.end - receive.requested);
  const std::size_t begin = receive.end - length;
  auto& waiting = near_.waiting;
  if (channel.memory == nullptr ||
      !channel.memory->read(receive.source + begin, receive.buffers(), receive.base + begin, length)) {
    channel.memory = nullptr;
    receive.source = 0;
    if (!waiting.contains(receive)) waiting.push_back(receive);
    return schedule_pulls(near_);
  }
  receive.end = begin;
  receive.fetched += length;
  if (receive.requested == receive.end && waiting.contains(receive)) waiting.remove(receive);
  if (receive.arrived + receive.fetched == receive.wanted) arrived_whole(receive);
}

/// The sender's half: writes what was pulled where it belongs. False if that is not possible.
bool Messenger::place(SendRequest& request, const PullRange& range) {
  Channel& channel = *request.channel;
  const std::size_t length = range.end - range.offset;
  if (channel.memory == nullptr) return false;
  if (!channel.memory->write(range.address, {request.payload(), request.base + range.offset, length})) {
    channel.memory = nullptr;
    return false;
  }
  wire::Segment segment;
  segment.kind = wire::SegmentKind::placed;
  segment.peer_id = request.receiver_id;
  segment.offset = range.offset;
  segment.total = length;
  say(channel, segment);
  return true;
}

void Messenger::on_placed(Channel& channel, const wire::Segment& segment, const ArrivalInfo& info) {
  RecvRequest* receive = receives_.find(segment.peer_id);
  const bool known =
      receive != nullptr && receive->channel == &channel && direct_.contains(*receive) && segment.total > 0;
  const bool sane = known && segment.offset <= receive->requested &&
                    segment.total <= receive->requested - segment.offset &&
                    segment.total <= receive->requested - receive->arrived;
  if (!sane) return refuse();
  account_for(*receive, segment.offset, segment.total, info);
}

}  // namespace cluster::protocol
