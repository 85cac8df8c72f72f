// The associations of one endpoint: by the address that frames go to, and by the sender of frames that come.
//
// An association begins with a request, which may be a recorded one of a process that is long gone; until
// something shows that its peer is alive (Association::confirmed) it is one of at most kUnconfirmedMax, the
// oldest of which is dropped. Confirmed ones stay: see association.h. Frames to an address go into the
// association that was confirmed last for it.
//
// The address that a frame comes from and the id in it say which association opens it. Two peers of one address
// never have the same id. A process can choose a salt that gives it the id of another one; but the association
// that is confirmed stays.
//
// Frames that wait for an association are few and short-lived copies: their flows send them again.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <unordered_map>
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
  Association* current = nullptr;  ///< what frames to the address are sealed in; null: none yet
  std::uint64_t request = 0;       ///< number of the request that is not answered; 0: none
  Time next_request{};
  Duration request_interval{};
  Time asked_since{};                           ///< when the first of the requests left that have no answer
  unsigned requests = 0;                        ///< since the last answer
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
  /// Whose frames come from this address under this id; null: there is none.
  Association* find(const SocketAddress& from, std::uint32_t id) const;
  /// By its salt and key; null if there is none.
  Association* find(const Salt& salt, const KeyId& key);
  /// A new one, which is not confirmed. Null: a peer that is confirmed has its address and its id.
  Association* add(std::unique_ptr<Association> association);
  /// The association is confirmed, if it was not, and frames to the peer's addresses are sealed in it.
  void make_current(Association& association);

  std::size_t size() const { return associations_.size(); }

  static constexpr std::size_t kUnconfirmedMax = 1024;

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
  /// False: a confirmed peer of one of its addresses has its id. One that is not confirmed is dropped.
  bool has_id_alone(const Association& next);

  std::unordered_map<SocketAddress, Route, SocketAddressHash> routes_;
  std::unordered_map<SocketAddress, std::vector<Association*>, SocketAddressHash> senders_;  ///< by address
  std::unordered_map<Name, std::unique_ptr<Association>, NameHash> associations_;
  std::deque<Name> unconfirmed_;  ///< oldest first; some have been confirmed since
};

}  // namespace cluster::seal
