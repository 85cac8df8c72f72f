#include "reliability/handshake.h"

namespace cluster::reliability {

OpeningClass classify_opening(const std::optional<PeerSession>& known, const wire::Opening& opening) {
  if (!known) return OpeningClass::fresh;
  if (opening.epoch > known->epoch) return OpeningClass::newer;
  const bool same = *known == PeerSession{opening.epoch, opening.session};
  return same ? OpeningClass::same : OpeningClass::stale;
}

bool Handshake::accept(const wire::FrameView& view, const SocketAddress& from) {
  const bool addressed = view.session == ours_.session;
  if (!addressed && (view.session != 0 || !view.has_opening)) return false;
  if (view.has_opening) {
    if (forgotten_ && classify_opening(forgotten_, view.opening) == OpeningClass::same) return false;
    if (!peer_ && !wire::lists(view.opening, view.rails, from)) return false;
    if (!peer_) {
      peer_ = view.opening;
      peer_addresses_ = wire::read_rails(view.rails);
      peer_addresses_.insert(peer_addresses_.begin(), peer_->name);
    }
    if (peer_->session != view.opening.session || peer_->epoch != view.opening.epoch) return false;
  }
  if (!peer_ || !from_peer(from)) return false;
  if (!addressed) return true;
  address_validated_ = true;
  // A bare opening shows that the peer has received ours, not that it has kept a session for it.
  if (view.sequenced() || view.acknowledges() || view.kind == wire::FrameKind::fin) peer_has_opening_ = true;
  return true;
}

void Handshake::forget_peer() {
  forgotten_ = peer();
  peer_.reset();
  peer_addresses_.clear();
  address_validated_ = false;
}

}  // namespace cluster::reliability
