#include "engine/peer_table.h"

namespace cluster::engine {

Peer& PeerTable::named(const SocketAddress& name) {
  Peer*& slot = by_name_[name];
  if (slot == nullptr) {
    all_.push_back(std::make_unique<Peer>());
    slot = all_.back().get();
    slot->channel.name = name;
    slot->channel.owner = slot->timer.owner = slot;
  }
  return *slot;
}

Peer* PeerTable::find(const SocketAddress& name) {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

void PeerTable::forget_aliases(Peer& peer) {
  std::erase_if(by_name_,
                [&](const auto& entry) { return entry.second == &peer && entry.first != peer.name(); });
  by_handle_.clear();  // some may have been found by another address
  peer.aliased = false;
}

bool PeerTable::is_alias(const SocketAddress& address, const Peer& peer) const {
  const auto found = by_name_.find(address);
  return found != by_name_.end() && found->second == &peer;
}

bool PeerTable::expected(const SocketAddress& name) {
  const Peer* peer = find(name);
  return (peer != nullptr && peer->flow != nullptr) || known(name);
}

Peer* PeerTable::look_up(std::uint64_t handle) {
  if (generation_ != book_->generation()) {
    generation_ = book_->generation();
    by_handle_.clear();
  }
  const SocketAddress address = book_->lookup(handle);
  if (address.empty()) return nullptr;
  if (handle >= by_handle_.size()) by_handle_.resize(handle + 1, nullptr);
  return by_handle_[handle] = &named(address);
}

std::uint64_t PeerTable::handle_of(Peer& peer) const {
  if (peer.handle_generation != book_->generation()) {
    peer.handle_generation = book_->generation();
    peer.handle = book_->find(peer.name()).value_or(protocol::kAddrNotAvail);
  }
  return peer.handle;
}

Peer* PeerTable::by_session(std::uint32_t session) {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : found->second;
}

}  // namespace cluster::engine
