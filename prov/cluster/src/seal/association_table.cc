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
  ids_[added.peer_id()].push_back(&added);
  for (const SocketAddress& address : added.peer().addresses) senders_[address].push_back(&added);
  return &added;
}

void AssociationTable::make_current(Association& association, const SocketAddress& source) {
  association.confirmed = association.listed = true;
  association.superseded = false;
  for (const SocketAddress& address : association.peer().addresses) {
    Route& its = routes_[address];
    const bool of_another = its.current != nullptr && its.current->listed &&
                            its.current->peer().addresses.front() == address &&
                            association.peer().addresses.front() != address;
    if (of_another && address != source) continue;
    seal_by(association, its);
    // A peer at this address receives the frames to it, whatever a translator has sent there before.
    const auto translated = behind_.find(address);
    if (translated == behind_.end()) continue;
    translated->second->sources.remove(address);
    behind_.erase(translated);
  }
}

void AssociationTable::seal_by(Association& association, Route& route) {
  route.request = 0;
  route.requests = 0;
  // If the association was current before, `next_request` stays and still limits the requests that notices
  // cause.
  if (route.current == &association) return;
  route.current = &association;
  route.request_interval = {};
  route.next_request = {};
}

Association* AssociationTable::find_by_id(std::uint32_t id) const {
  const auto found = ids_.find(id);
  return found == ids_.end() ? nullptr : found->second.front();
}

Association* AssociationTable::behind(const SocketAddress& source) const {
  const auto found = behind_.find(source);
  return found == behind_.end() ? nullptr : found->second;
}

bool AssociationTable::lists_it(const SocketAddress& address, const Association& except) const {
  const auto senders = senders_.find(address);
  return senders != senders_.end() && std::ranges::any_of(senders->second, [&](const Association* each) {
           return each->confirmed && each->peer().salt != except.peer().salt;
         });
}

void AssociationTable::prove(Association& association, ObservedSource& source) {
  // Sources that were forgotten (ObservedSources::note) are removed many at a time.
  if (behind_.size() >= 2 * ObservedSources::kMax * associations_.size()) {
    std::erase_if(behind_, [](const auto& each) { return each.second->sources.at(each.first) == nullptr; });
  }
  Association*& owner = behind_[source.address];
  if (owner != nullptr && owner != &association) owner->sources.remove(source.address);
  owner = &association;
  source.proven = true;
  source.question = 0;
  association.sources.use(source);
  Route& route = routes_[association.peer().addresses[source.listed]];
  const auto earlier = [&](const Association& each) {
    return each.peer().salt != association.peer().salt &&
           each.peer().addresses.front() == association.peer().addresses.front();
  };
  if (route.current != nullptr && earlier(*route.current)) route.current->superseded = true;
  // Earlier incarnations may have sealed frames that arrive late. They are over, proved or not. Their answers
  // to requests may arrive late, too, so the requests to their addresses are over as well.
  for (Association* const each : senders_[association.peer().addresses[source.listed]]) {
    if (each == &association) break;
    if (!earlier(*each)) continue;
    each->superseded = true;
    for (const SocketAddress& address : each->peer().addresses) {
      if (Route* const its = find_route(address); its != nullptr && its->current == each) its->request = 0;
    }
  }
  association.confirmed = true;
  seal_by(association, route);
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
  std::vector<Association*>& same_id = ids_[found->second->peer_id()];
  std::erase(same_id, found->second.get());
  if (same_id.empty()) ids_.erase(found->second->peer_id());
  associations_.erase(found);
}

}  // namespace cluster::seal
