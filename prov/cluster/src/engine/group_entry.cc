#include "engine/group_entry.h"

#include <algorithm>
#include <iterator>

namespace cluster::engine {
namespace {

/// An empty socket is read again only after this interval, because each read is a system call and a waiting member
/// would make it all the time. (A socket wakes a thread that sleeps.) Members of a team mostly wait for something
/// else, so its socket is read less and less often, unless an operation waits for it.
constexpr Duration kPollInterval = 4us;
constexpr Duration kPollIntervalMax = 256us;

}  // namespace

void GroupEntry::meet(Peer& peer) {
  group->meet(peer.name(), &peer, peer.channel.carrier);
  unreached |= peer.channel.carrier == nullptr;
}

void GroupEntry::expect(bool waits) {
  if (!waits) {
    if (awaited > 0) --awaited;
    return;
  }
  poll_interval = kPollInterval;
  next_poll = {};
  ++awaited;
}

void GroupEntry::note_poll(Time now, bool arrivals, bool more) {
  const bool soon = arrivals || awaited > 0 || content == protocol::GroupProtocol::Content::application;
  poll_interval =
      soon ? kPollInterval : std::min(std::max(poll_interval, kPollInterval) * 2, kPollIntervalMax);
  unread = more;
  next_poll = more ? now : now + poll_interval;
}

void GroupEntry::drop_ended_streams(protocol::GroupProtocol& protocol) {
  for (auto item = incoming.begin(); item != incoming.end();) {
    const group::Member* const member = group->find(item->first);
    const bool lives =
        member != nullptr && member->stream != nullptr && member->stream->id() == item->second.stream;
    if (!lives) protocol.abort(item->second.assembly, Status::reset);
    item = lives ? std::next(item) : incoming.erase(item);
  }
}

void GroupEntry::drop_streams(protocol::GroupProtocol& protocol, Status status) {
  for (; !incoming.empty(); incoming.erase(incoming.begin()))
    protocol.abort(incoming.begin()->second.assembly, status);
}

}  // namespace cluster::engine
