#include "reliability/handshake.h"

#include <utility>

namespace cluster::reliability {

OpeningClass classify_opening(const std::optional<PeerSession>& known, const wire::Opening& opening) {
  if (!known) return OpeningClass::fresh;
  if (opening.epoch > known->epoch) return OpeningClass::newer;
  const bool same = *known == PeerSession{opening.epoch, opening.session};
  return same ? OpeningClass::same : OpeningClass::stale;
}

bool Handshake::accept(const wire::FrameView& view, const SocketAddress& from) {
  if (view.session != ours_.session) return false;
  if (view.has_opening) {
    if (std::ranges::find(forgotten_, PeerSession{view.opening.epoch, view.opening.session}) !=
        forgotten_.end())
      return false;
    if (!peer_ && (!echoed(view) || !wire::lists(view.opening, view.rails, from))) return false;
    if (!peer_) {
      // Sets `peer_` last, because the allocation for the addresses may fail.
      std::vector<SocketAddress> addresses = wire::read_rails(view.rails);
      addresses.insert(addresses.begin(), view.opening.name);
      std::vector<wire::VerbsAddress> queue_pairs = wire::read_verbs(view.opening, view.rails);
      for (const wire::VerbsAddress& each : queue_pairs) addresses.push_back(each.address);
      peer_queue_pairs_ = std::move(queue_pairs);
      peer_addresses_ = std::move(addresses);
      peer_ = view.opening;
      ours_.echo = view.opening.token;
    }
    if (peer_->session != view.opening.session || peer_->epoch != view.opening.epoch) return false;
  }
  return peer_ && from_peer(from);
}

void Handshake::confirm(const wire::FrameView& view) {
  if (view.sequenced() || view.acknowledges() || view.kind == wire::FrameKind::fin) peer_has_opening_ = true;
}

Handshake Handshake::towards(const wire::Opening& caller) const {
  Handshake answering(ours_, further_, sibling_, queue_pairs_);
  answering.peer_ = caller;
  answering.ours_.echo = caller.token;
  return answering;
}

std::optional<SocketAddress> Handshake::replace_peer_queue_pair(std::size_t number, std::uint32_t now) {
  if (number >= peer_queue_pairs_.size() || !wire::is_queue_pair_number(now)) return std::nullopt;
  const SocketAddress before = peer_queue_pairs_[number].address;
  const SocketAddress after = SocketAddress::queue_pair(before.ip().data(), now);
  if (has_address(after)) return std::nullopt;
  peer_queue_pairs_[number].address = after;
  std::ranges::replace(peer_addresses_, before, after);
  return before;
}

void Handshake::forget_peer() {
  if (forgotten_.size() == kForgottenMax) forgotten_.erase(forgotten_.begin());
  forgotten_.push_back(peer());
  peer_.reset();
  ours_.echo = 0;
  peer_addresses_.clear();
  peer_queue_pairs_.clear();
}

}  // namespace cluster::reliability
