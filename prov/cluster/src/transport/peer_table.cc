#include "transport/peer_table.h"

#include <algorithm>

namespace cluster::transport {

Peer& PeerTable::find_or_add(const SocketAddress& name) {
  Peer*& slot = by_name_[name];
  if (slot == nullptr) {
    if (failed_.capacity() <= all_.size()) failed_.reserve(2 * all_.size() + 1);
    all_.push_back(std::make_unique<Peer>());
    slot = all_.back().get();
    slot->channel.name = name;
    slot->channel.owner = slot;
  }
  return *slot;
}

Peer* PeerTable::find(const SocketAddress& name) {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

void PeerTable::add_alias(Peer& peer, const SocketAddress& address) {
  if (by_name_.try_emplace(address, &peer).second) peer.has_aliases = true;
}

void PeerTable::remove_aliases(Peer& peer) {
  if (!peer.has_aliases) return;
  std::erase_if(by_name_,
                [&](const auto& entry) { return entry.second == &peer && entry.first != peer.name(); });
  by_handle_.clear();  // a handle may have been looked up by an alias
  peer.has_aliases = false;
}

bool PeerTable::is_alias(const SocketAddress& address, const Peer& peer) const {
  const auto found = by_name_.find(address);
  return found != by_name_.end() && found->second == &peer;
}

bool PeerTable::known(const SocketAddress& name) {
  const Peer* const peer = find(name);
  const auto has_met = [&](const Transport* each) { return each->has_met(*peer); };
  return (peer != nullptr && std::any_of(transports_.begin(), transports_.end(), has_met)) ||
         in_address_vector(name);
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

void PeerTable::renew_handle(Peer& peer) const {
  const std::uint64_t generation = addresses_->generation();
  const AddressTable::Sender sender = addresses_->find_sender(peer.name(), protocol::kAddrNotAvail);
  peer.handle = {sender.handle, sender.source, generation};
}

bool PeerTable::is_member(const protocol::Channel& channel) {
  if (handle_of(channel) != protocol::kAddrNotAvail) return true;
  Peer& peer = peer_of(channel);
  return std::any_of(transports_.begin(), transports_.end(),
                     [&](Transport* each) { return each->vouches_for(peer); });
}

bool PeerTable::is_member_name(const SocketAddress& name) {
  return in_address_vector(name) || std::any_of(transports_.begin(), transports_.end(), [&](Transport* each) {
           return each->vouches_for_name(name);
         });
}

void PeerTable::mark_failed(Peer& peer, Status status) {
  const auto is_peer = [&](const Failure& failure) { return failure.peer == &peer; };
  peer.lane = nullptr;
  peer.failed = true;
  if (std::none_of(failed_.begin(), failed_.end(), is_peer)) failed_.push_back({&peer, status});
}

void PeerTable::clear_failed(Peer& peer) {
  peer.failed = false;
  std::erase_if(failed_, [&](const Failure& failure) { return failure.peer == &peer; });
}

}  // namespace cluster::transport
