#include "network/unknown_budget.h"

#include <algorithm>
#include <vector>

namespace cluster::network {
namespace {

/// Returns the number of bytes held for the peer. For speed, it counts each frame in flight to the peer as a
/// frame of full length.
std::size_t held_for(RemotePeer& remote) {
  reliability::Flow& flow = *remote.flow;
  return sizeof remote.common + sizeof remote + sizeof flow + flow.receiver().footprint() +
         remote.common.channel.tx.control.footprint() +
         flow.queue().window().span() * (reliability::kHeadroom + wire::kFrameMax);
}

}  // namespace

void UnknownBudget::account_unknown(Time now, RemotePeer& remote) {
  Peer& peer = remote.common;
  const bool counts = remote.flow != nullptr && !peers_.is_member(peer.channel);
  // The peer is a member now: it is in the address vector, or a sibling or another address vouches for it.
  if (!counts && remote.flow != nullptr) remote.flow->paths().allow_everywhere(true);
  set_held(remote, counts ? held_for(remote) : 0);
  if (counts && peer.channel.rma.refused >= kRefusedAccessesMax) peers_.mark_failed(peer, Status::access);
  if (bytes_ > parts_.settings.unknown_bytes_max) drop_unknown(now);
}

void UnknownBudget::drop_unknown(Time now) {
  std::vector<RemotePeer*> sources;
  for (const std::unique_ptr<Peer>& peer : peers_.all()) {
    RemotePeer* const remote = parts_.find(*peer);
    if (remote != nullptr && remote->held != 0) sources.push_back(remote);
  }
  const auto active = [now](const RemotePeer& source) { return now - source.heard_at < kActive; };
  std::ranges::sort(sources, [&](const RemotePeer* a, const RemotePeer* b) {
    if (active(*a) != active(*b)) return active(*b);
    return active(*a) ? a->held > b->held : a->heard_at < b->heard_at;
  });
  const std::size_t limit = parts_.settings.unknown_bytes_max;
  const std::size_t target = limit - limit / kFreedPart;
  for (RemotePeer* source : sources) {
    if (bytes_ <= target) break;
    ++parts_.environment.counters.unknown_dropped;
    set_held(*source, 0);
    peers_.mark_failed(source->common, Status::no_memory);
  }
  if (std::exchange(logged_, true)) return;
  parts_.environment.log.warn(
      "senders outside the address vector occupy %zu MB of memory, so this endpoint drops some of their "
      "sessions: idle ones first, then the largest (the counter unknown_dropped counts further drops)",
      limit >> 20);
}

}  // namespace cluster::network
