#include "sim/session_peers.h"

#include <cstring>
#include <utility>
#include <vector>

#include "wire/admit.h"
#include "wire/frame.h"
#include "wire/opening.h"

namespace cluster::sim {
namespace {

/// Returns the session of ours that the opening of the frame names, or 0. The opening follows the header,
/// whether or not the frame is sealed.
std::uint32_t own_session(const link::OutFrame& frame) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < frame.count; ++i) {
    bytes.insert(bytes.end(), frame.pieces[i].begin(), frame.pieces[i].end());
  }
  wire::Opening opening;
  ConstBytes rails;
  const std::size_t size = wire::decode(ConstBytes(bytes).subspan(sizeof(wire::FrameHeader)), opening, rails);
  return size != 0 ? opening.session : 0;
}

}  // namespace

bool SessionPeers::is_wrong_peer(const wire::FrameView& frame) const {
  const auto peer = session_peers_.find(frame.session);
  return peer != session_peers_.end() && peer->second != frame.opening.session;
}

/// `refused`: the session of the frame that the reset quotes.
void SessionPeers::on_reset(std::uint32_t refused) {
  const auto with = with_.find(refused);
  if (with == with_.end()) return;
  session_peers_.erase(with->second);
  claimed_by_.erase(with->second);
}

/// A frame of our session names no session of the peer: the engine looks for a peer (again).
void SessionPeers::on_opening_sent(std::uint32_t own) {
  session_peers_.erase(own);
  claimed_by_.erase(own);
  for (auto& [peer, with] : with_) {
    if (with == own) with = 0;
  }
}

/// A frame of our session goes to a session of the peer. Returns false if the latter is over.
bool SessionPeers::on_session_used(std::uint32_t own, std::uint32_t peer) {
  session_peers_.emplace(own, peer);
  std::uint32_t& with = with_.emplace(peer, own).first->second;
  if (with == 0 || (with != own && acknowledged_.contains(peer))) return false;
  with = own;
  return true;
}

bool SessionPeers::read(const wire::FrameView& frame, Time turn) {
  if (turn_ != turn) some_read_ = wrong_peer_read_ = false;
  turn_ = turn;
  const bool of_a_flow = frame.kind == wire::FrameKind::flow || frame.kind == wire::FrameKind::fin;
  const bool claims = of_a_flow && frame.session != 0 && frame.has_opening;
  const bool wrong_peer = claims && is_wrong_peer(frame);
  if (wrong_peer_read_ || (wrong_peer && some_read_)) return false;
  some_read_ = true;
  wrong_peer_read_ = wrong_peer_ = wrong_peer;
  if (frame.kind == wire::FrameKind::reset) on_reset(frame.reset.session);
  if (claims && claimed_by_.emplace(frame.session, frame.opening.session).second) {
    claims_.emplace(frame.opening.session, frame.session);
  }
  return true;
}

bool SessionPeers::sent(const link::OutFrame& frame) {
  wire::FrameHeader header;
  if (frame.pieces[0].size() < sizeof header) return true;
  std::memcpy(&header, frame.pieces[0].data(), sizeof header);
  constexpr std::uint8_t of_the_peer = wire::frame_flag::kSequenced | wire::frame_flag::kAcknowledges;
  const std::uint32_t to = header.session;
  const bool of_a_flow = header.kind == static_cast<std::uint8_t>(wire::FrameKind::flow);
  // A frame without either of these flags only opens a session. It does not show that the engine accepts the
  // peer.
  if (!of_a_flow || (header.flags & of_the_peer) == 0) return true;
  if ((header.flags & wire::frame_flag::kOpening) != 0) {
    const std::uint32_t own = own_session(frame);
    if (to == 0) {
      on_opening_sent(own);
      return true;
    }
    if (!on_session_used(own, to)) return false;
  } else if (const auto claim = claims_.find(to); to != 0 && claim != claims_.end()) {
    session_peers_.emplace(claim->second, to);
  }
  if ((header.flags & wire::frame_flag::kAcknowledges) != 0) acknowledged_.insert(to);
  return true;
}

bool SessionPeers::take_wrong_peer() { return std::exchange(wrong_peer_, false); }

}  // namespace cluster::sim
