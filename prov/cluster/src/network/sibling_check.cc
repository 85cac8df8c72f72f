#include "network/sibling_check.h"

#include <algorithm>
#include <cstring>

#include "wire/control.h"

namespace cluster::network {
namespace {

using Claim = RemotePeer::Sibling::Claim;

/// Compares a name with one in the wire format, without the scope, because frames about siblings carry no
/// scope.
bool is_block_of(const SocketAddress& name, ConstBytes block) {
  const wire::RailBlock expected = wire::rail_block(name);
  return block.size() == sizeof expected && std::memcmp(block.data(), &expected, sizeof expected) == 0;
}

}  // namespace

SiblingCheck::SiblingCheck(const NetworkParts& parts, PeerTable& peers, SessionTable& sessions,
                           AnswerLimiter& limiter)
    : parts_(parts), peers_(peers), sessions_(sessions), limiter_(limiter) {}

/// Returns false if the flow already knows its peer, because the flow then decides itself which openings are
/// from the peer.
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
  sibling = {.name = name, .session = view.opening.session};
  sibling.awaited_since = awaited_since;
  if (name.empty()) return;
  sibling.claim = Claim::made;
  sibling.challenge = parts_.environment.random.next();
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
  const std::uint32_t session = peer.flow->handshake().session();
  const auto request =
      wire::ControlFrame::sibling_request(session, peer.sibling.challenge, wire::rail_block(peer.name()));
  link::send_frame(*parts_.link, request.bytes(), parts_.path_to(peer.sibling.name));
}

void SiblingCheck::on_request(Time now, const wire::FrameView& view, const link::Path& from) {
  wire::RailBlock caller;
  std::memcpy(&caller, view.rails.data(), sizeof caller);
  if (parts_.roster == nullptr || !parts_.roster->contains(caller) || !limiter_.admits_to(now, from.to)) {
    ++parts_.environment.counters.refused_stale;
    return;
  }
  link::send_frame(*parts_.link, wire::ControlFrame::sibling_response(view).bytes(), from);
}

void SiblingCheck::on_response(const wire::FrameView& view, const SocketAddress& from) {
  RemotePeer* const peer = sessions_.find(view.sequence.value);
  const wire::RailBlock source = wire::rail_block(from);
  const bool asked = peer != nullptr && peer->sibling.claim != Claim::none &&
                     is_block_of(peer->name(), view.rails) &&
                     is_block_of(peer->sibling.name, as_bytes(&source, sizeof source)) &&
                     view.challenge() == peer->sibling.challenge;
  if (!asked) {
    ++parts_.environment.counters.refused_stale;
    return;
  }
  if (peer->sibling.claim == Claim::confirmed) return;
  peer->sibling.claim = Claim::confirmed;
  ++parts_.environment.counters.siblings_confirmed;
}

}  // namespace cluster::network
