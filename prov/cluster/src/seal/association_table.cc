#include "seal/association_table.h"

#include <algorithm>
#include <utility>

namespace cluster::seal {

Route* AssociationTable::find_route(const SocketAddress& address) {
  const auto found = routes_.find(address);
  return found == routes_.end() ? nullptr : &found->second;
}

Association* AssociationTable::find(const SocketAddress& from, std::uint32_t id) {
  Route* const route = find_route(from);
  if (route == nullptr) return nullptr;
  for (Association* association : route->associations) {
    if (association->peer_id() == id) return association;
  }
  return nullptr;
}

Association* AssociationTable::find(const Salt& salt, const KeyId& key) {
  const auto found = associations_.find({salt, key});
  return found == associations_.end() ? nullptr : found->second.get();
}

Association& AssociationTable::add(std::unique_ptr<Association> association) {
  while (!unconfirmed_.empty() && unconfirmed_.size() >= kUnconfirmedMax) {
    drop(unconfirmed_.front());
    unconfirmed_.pop_front();
  }
  Association& added = *association;
  const Name name{added.peer().salt, added.key().id()};
  unconfirmed_.push_back(name);
  associations_[name] = std::move(association);
  for (const SocketAddress& address : added.peer().addresses) routes_[address].associations.push_back(&added);
  return added;
}

void AssociationTable::make_current(Association& association) {
  association.confirmed = true;
  for (const SocketAddress& address : association.peer().addresses) {
    Route& its = routes_[address];
    its.request = 0;
    its.requests = 0;
    if (its.current == &association) continue;  // the next notice waits for its time all the same
    its.current = &association;
    its.request_interval = {};
    its.next_request = {};
  }
}

/// Unless it was confirmed meanwhile.
void AssociationTable::drop(const Name& name) {
  const auto found = associations_.find(name);
  if (found == associations_.end() || found->second->confirmed) return;
  for (const SocketAddress& address : found->second->peer().addresses) {
    Route& its = routes_[address];
    std::erase(its.associations, found->second.get());
    if (its.associations.empty() && its.request == 0 && its.waiting.empty()) routes_.erase(address);
  }
  associations_.erase(found);
}

}  // namespace cluster::seal
