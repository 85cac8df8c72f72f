// The associations of one endpoint: by the address that frames go to, and by the sender of frames that come.
//
// An association begins with a request, which may be a recorded one of a process that is long gone; until
// something shows that its peer is alive (Association::confirmed) it is one of at most kUnconfirmedMax, the
// oldest of which is dropped. Confirmed ones stay: see association.h. Frames to an address go into the
// association that was confirmed last for it.
//
// The address that frames go to is of a realm, and so are those of an association's peer (base/address.h); the source of a frame
// that has come is not: which association opens it, and so whose it is, is found by the id in it. In one realm two peers of one
// address never have the same id. In two they may, since a process can choose a salt to that end: then whose a frame is shows
// when it opens, so that none can stand in the way of the other.
//
// Frames that wait for an association are few and short-lived copies: their flows send them again.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "link/link.h"
#include "seal/association.h"

namespace cluster::seal {

/// A frame that waits for an association.
struct WaitingFrame {
  link::Path path;
  std::vector<std::byte> bytes;
};

/// What is known of one address of a peer.
struct Route {
  Association* current = nullptr;          ///< what frames to the address are sealed in; null: none yet
  std::uint64_t request = 0;               ///< number of the request that is not answered; 0: none
  Time next_request{};
  Duration request_interval{};
  Time asked_since{};  ///< when the first of the requests left that have no answer
  unsigned requests = 0;                       ///< since the last answer
  std::array<std::uint64_t, 16> keep_alives{};  ///< counters of the last ones sent, as far as not answered
  unsigned next_keep_alive = 0;
  std::vector<WaitingFrame> waiting;
  Time waiting_since{};
};

class AssociationTable {
 public:
  Route& route(const SocketAddress& address) { return routes_[address]; }
  /// Null if nothing was sent there and nothing authentic came from there.
  Route* find_route(const SocketAddress& address);
  /// The route to this address in one of the realms, for which wanted(route) is true, and its address; null: there is none.
  template <typename Wanted>
  std::pair<Route*, SocketAddress> find_route(const SocketAddress& plain, std::span<const std::uint8_t> realms,
                                              Wanted&& wanted) {
    for (const std::uint8_t realm : realms) {
      const SocketAddress address = plain.in_realm(realm);
      Route* const route = find_route(address);
      if (route != nullptr && wanted(*route)) return {route, address};
    }
    return {nullptr, plain};
  }
  struct Found {
    Association* first = nullptr;  ///< null: there is none
    bool alone = true;             ///< no other has address and id
  };
  /// Whose frames come from this address, whatever its realm, under this id.
  Found find(const SocketAddress& from, std::uint32_t id) const;
  /// The one of them for which opens(association) is true; null: none.
  template <typename Opens>
  Association* find_opener(const SocketAddress& from, std::uint32_t id, Opens&& opens) const {
    const auto found = senders_.find(from.in_realm(0));
    if (found == senders_.end()) return nullptr;
    for (Association* association : found->second) {
      if (association->peer_id() == id && opens(*association)) return association;
    }
    return nullptr;
  }
  /// By its salt and key; null if there is none.
  Association* find(const Salt& salt, const KeyId& key);
  /// A new one, which is not confirmed. Null: a peer of its realm that is confirmed has its address and its id.
  Association* add(std::unique_ptr<Association> association);
  /// The association is confirmed, if it was not, and frames to the peer's addresses are sealed in it.
  void make_current(Association& association);

  std::size_t size() const { return associations_.size(); }

  static constexpr std::size_t kUnconfirmedMax = 1024;  ///< of each realm

 private:
  struct Name {
    Salt salt;
    KeyId key;
    friend bool operator==(const Name&, const Name&) = default;
  };
  struct NameHash {
    std::size_t operator()(const Name& name) const { return sender_id(name.salt, name.key); }
  };
  void drop(const Name& name);
  /// False: a confirmed peer of its realm and one of its addresses has its id. One that is not confirmed is dropped.
  bool has_id_alone(const Association& next);

  std::unordered_map<SocketAddress, Route, SocketAddressHash> routes_;
  std::unordered_map<SocketAddress, std::vector<Association*>, SocketAddressHash> senders_;  ///< by address in realm 0
  std::unordered_map<Name, std::unique_ptr<Association>, NameHash> associations_;
  std::array<std::deque<Name>, kRealmsMax + 1> unconfirmed_;  ///< of each realm, oldest first; some have been confirmed since
};

}  // namespace cluster::seal
