#include "network/sibling_check.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "network/control_frames.h"

namespace cluster::network {
namespace {

using Claim = RemotePeer::Sibling::Claim;

std::uint64_t interval_at(Time now, Duration interval) {
  return static_cast<std::uint64_t>(now.time_since_epoch() / interval);
}

/// A name as on the wire, without its scope: no frame about siblings carries that.
bool is_block_of(const SocketAddress& name, ConstBytes block) {
  const wire::RailBlock expected = wire::rail_block(name);
  return block.size() == sizeof expected && std::memcmp(block.data(), &expected, sizeof expected) == 0;
}

}  // namespace

SiblingCheck::SiblingCheck(const NetworkParts& parts, PeerTable& peers, SessionTable& sessions,
                           AnswerLimiter& limiter)
    : parts_(parts),
      peers_(peers),
      sessions_(sessions),
      hash_{parts.environment.random.next(), parts.environment.random.next()},
      limiter_(limiter) {}

/// A flow that knows its peer decides by itself which openings are the peer's.
bool SiblingCheck::awaits_answer(Time now, RemotePeer& peer, const wire::FrameView& view) {
  if (peer.flow->handshake().knows_peer()) return false;
  note_opening(peer, view);
  RemotePeer::Sibling& sibling = peer.sibling;
  if (sibling.claim != Claim::made || peers_.is_member(peer.channel) || !may_ask(peer)) return false;
  if (sibling.awaited_since == Time{}) sibling.awaited_since = now;
  review(now, peer);
  return now - sibling.awaited_since < kLongestWait;
}

void SiblingCheck::note_opening(RemotePeer& peer, const wire::FrameView& view) {
  const SocketAddress name = wire::read_sibling(view.opening, view.rails);
  RemotePeer::Sibling& sibling = peer.sibling;
  const bool same = sibling.name == name && sibling.session == view.opening.session;
  if (same && sibling.claim != Claim::none) return;
  const Time awaited_since = sibling.awaited_since;
  sibling = {
      .name = name, .session = view.opening.session, .claim = name.empty() ? Claim::none : Claim::made};
  sibling.awaited_since = awaited_since;
}

void SiblingCheck::review(Time now, RemotePeer& peer) {
  RemotePeer::Sibling& sibling = peer.sibling;
  if (now < sibling.next_request) return;
  sibling.next_request = now + kRequestInterval;
  if (!peers_.is_member(peer.channel) && may_ask(peer)) ask(now, peer);
}

bool SiblingCheck::may_ask(const RemotePeer& peer) {
  const SocketAddress& sibling = peer.sibling.name;
  return std::ranges::equal(sibling.ip(), peer.name().ip()) && sibling != parts_.name &&
         peers_.is_member_name(sibling);
}

void SiblingCheck::ask(Time now, const RemotePeer& peer) {
  if (!limiter_.admits(now)) return;
  const SocketAddress& sibling = peer.sibling.name;
  const link::Path path{sibling, {}, false, multipath::rail_towards(parts_.rails, sibling)};
  const std::uint32_t session = peer.flow->handshake().session();
  const std::uint64_t bits = challenge(interval_at(now, kInterval), peer);
  send_control(*parts_.link,
               wire::ControlFrame::sibling_request(session, bits, wire::rail_block(peer.name())).bytes(),
               path);
}

void SiblingCheck::on_request(Time now, const wire::FrameView& view, const link::Path& from) {
  wire::RailBlock caller;
  std::memcpy(&caller, view.rails.data(), sizeof caller);
  if (parts_.roster == nullptr || !parts_.roster->contains(caller) || !limiter_.admits_to(now, from.to)) {
    ++parts_.environment.counters.refused_stale;
    return;
  }
  send_control(*parts_.link, wire::ControlFrame::sibling_response(view).bytes(), from);
}

void SiblingCheck::on_response(Time now, const wire::FrameView& view, const SocketAddress& from) {
  RemotePeer* const peer = sessions_.find(view.sequence.value);
  const std::uint64_t at = interval_at(now, kInterval);
  const wire::RailBlock source = wire::rail_block(from);
  const bool asked = peer != nullptr && peer->sibling.claim != Claim::none &&
                     is_block_of(peer->name(), view.rails) &&
                     is_block_of(peer->sibling.name, as_bytes(&source, sizeof source));
  const auto answers = [&](std::uint64_t interval) { return view.challenge() == challenge(interval, *peer); };
  if (!asked || (!answers(at) && !answers(at - 1))) {
    ++parts_.environment.counters.refused_stale;
    return;
  }
  if (peer->sibling.claim == Claim::confirmed) return;
  peer->sibling.claim = Claim::confirmed;
  ++parts_.environment.counters.siblings_confirmed;
}

/// Of the peer's claim, and of the time.
std::uint64_t SiblingCheck::challenge(std::uint64_t interval, const RemotePeer& peer) const {
  std::array<std::uint64_t, 7> words{};
  const SocketAddress& caller = peer.name();
  const SocketAddress& sibling = peer.sibling.name;
  std::memcpy(&words[0], caller.ip().data(), caller.ip().size());
  std::memcpy(&words[2], sibling.ip().data(), sibling.ip().size());
  words[4] = std::uint64_t{caller.port()} << 48 | std::uint64_t{sibling.port()} << 32 | peer.sibling.session;
  words[5] = std::uint64_t{static_cast<std::uint8_t>(caller.family())} << 8 |
             static_cast<std::uint8_t>(sibling.family());
  words[6] = interval;
  return hash_(words);
}

}  // namespace cluster::network
