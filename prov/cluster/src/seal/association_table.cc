#include "seal/association_table.h"

#include <algorithm>
#include <utility>

namespace cluster::seal {

Route* AssociationTable::find_route(const SocketAddress& address) {
  const auto found = routes_.find(address);
  return found == routes_.end() ? nullptr : &found->second;
}

Association* AssociationTable::find(const SocketAddress& from, std::uint32_t id) const {
  const auto senders = senders_.find(from);
  if (senders == senders_.end()) return nullptr;
  const auto found = std::ranges::find(senders->second, id, &Association::peer_id);
  return found == senders->second.end() ? nullptr : *found;
}

Association* AssociationTable::find(const Salt& salt, const KeyId& key) {
  const auto found = associations_.find({salt, key});
  return found == associations_.end() ? nullptr : found->second.get();
}

/// A process with the key of the job can impersonate a peer, but this check keeps it from displacing a
/// confirmed association.
bool AssociationTable::has_id_alone(const Association& next) {
  for (const SocketAddress& address : next.peer().addresses) {
    const Association* const other = find(address, next.peer_id());
    if (other == nullptr) continue;
    if (other->confirmed) return false;
    const Name name{other->peer().salt, other->key().id()};
    drop(name);
    std::erase(unconfirmed_, name);
  }
  return true;
}

Association* AssociationTable::add(std::unique_ptr<Association> association) {
  if (!has_id_alone(*association)) return nullptr;
  Association& added = *association;
  while (!unconfirmed_.empty() && unconfirmed_.size() >= kUnconfirmedMax) {
    drop(unconfirmed_.front());
    unconfirmed_.pop_front();
  }
  const Name name{added.peer().salt, added.key().id()};
  unconfirmed_.push_back(name);
  associations_[name] = std::move(association);
  for (const SocketAddress& address : added.peer().addresses) senders_[address].push_back(&added);
  return &added;
}

void AssociationTable::make_current(Association& association) {
  association.confirmed = true;
  for (const SocketAddress& address : association.peer().addresses) {
    Route& its = routes_[address];
    its.request = 0;
    its.requests = 0;
    // If the association was current before, `next_request` stays and still limits the requests that notices
    // cause.
    if (its.current == &association) continue;
    its.current = &association;
    its.request_interval = {};
    its.next_request = {};
  }
}

/// Drops the association unless it is confirmed.
void AssociationTable::drop(const Name& name) {
  const auto found = associations_.find(name);
  if (found == associations_.end() || found->second->confirmed) return;
  for (const SocketAddress& address : found->second->peer().addresses) {
    const auto senders = senders_.find(address);
    // If the peer names an address twice, an earlier pass has already erased the list.
    if (senders == senders_.end()) continue;
    std::erase(senders->second, found->second.get());
    if (senders->second.empty()) senders_.erase(senders);
  }
  associations_.erase(found);
}

}  // namespace cluster::seal
