#include "engine/peer_table.h"

#include <algorithm>

namespace cluster::engine {

Peer& PeerTable::find_or_add(const SocketAddress& name) {
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

void PeerTable::add_alias(Peer& peer, const SocketAddress& address) {
  by_name_.try_emplace(address, &peer);
  peer.contact.has_aliases = true;
}

void PeerTable::remove_aliases(Peer& peer) {
  if (!peer.contact.has_aliases) return;
  std::erase_if(by_name_,
                [&](const auto& entry) { return entry.second == &peer && entry.first != peer.name(); });
  by_handle_.clear();  // some may have been found by another address
  peer.contact.has_aliases = false;
}

bool PeerTable::is_alias(const SocketAddress& address, const Peer& peer) const {
  const auto found = by_name_.find(address);
  return found != by_name_.end() && found->second == &peer;
}

bool PeerTable::known(const SocketAddress& name) {
  const Peer* peer = find(name);
  return (peer != nullptr && peer->flow != nullptr && !peer->half_open()) || in_address_vector(name);
}

Peer* PeerTable::look_up(std::uint64_t handle) {
  if (generation_ != addresses_->generation()) {
    generation_ = addresses_->generation();
    by_handle_.clear();
  }
  const SocketAddress address = addresses_->lookup(handle);
  if (address.empty()) return nullptr;
  if (handle >= by_handle_.size()) by_handle_.resize(handle + 1, nullptr);
  return by_handle_[handle] = &find_or_add(address);
}

std::uint64_t PeerTable::handle_of(const protocol::Channel& channel) {
  Peer& peer = *static_cast<Peer*>(channel.owner);
  if (peer.handle.generation != addresses_->generation()) {
    peer.handle = {addresses_->find(peer.name()).value_or(protocol::kAddrNotAvail), addresses_->generation()};
  }
  return peer.handle.value;
}

bool PeerTable::is_member(const protocol::Channel& channel) {
  Peer& peer = *static_cast<Peer*>(channel.owner);
  if (peer.self || peer.inbox != nullptr || handle_of(channel) != protocol::kAddrNotAvail) return true;
  return is_member_by_alias(peer) || has_member_sibling(peer);
}

/// The application may know it by another of its addresses than that under which it came.
bool PeerTable::is_member_by_alias(const Peer& peer) const {
  if (!peer.contact.has_aliases || peer.flow == nullptr) return false;
  return std::ranges::any_of(peer.flow->paths().validated_addresses(), [&](const SocketAddress& address) {
    return is_alias(address, peer) && in_address_vector(address);
  });
}

bool PeerTable::is_member_name(const SocketAddress& name) {
  if (in_address_vector(name)) return true;
  const Peer* const peer = find(name);
  return peer != nullptr && is_member_by_alias(*peer);
}

/// Asked with each access: looked up anew when the address vector has changed. An alias may end at any time.
bool PeerTable::has_member_sibling(Peer& peer) {
  Peer::Sibling& sibling = peer.contact.sibling;
  if (sibling.claim != Peer::Sibling::Claim::confirmed) return false;
  if (sibling.generation != addresses_->generation()) {
    sibling.generation = addresses_->generation();
    sibling.member = in_address_vector(sibling.name);
  }
  return sibling.member || is_member_name(sibling.name);
}

void PeerTable::mark_failed(Peer& peer, Status status) {
  const auto is_peer = [&](const Failure& failure) { return failure.peer == &peer; };
  peer.local.lane = nullptr;
  peer.local.failed = true;
  if (std::none_of(failed_.begin(), failed_.end(), is_peer)) failed_.push_back({&peer, status});
}

void PeerTable::clear_failed(Peer& peer) {
  peer.local.failed = false;
  std::erase_if(failed_, [&](const Failure& failure) { return failure.peer == &peer; });
}

}  // namespace cluster::engine
