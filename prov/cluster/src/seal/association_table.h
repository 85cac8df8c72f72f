// The associations of one endpoint: by the address that frames go to, and by the sender of frames that come.
//
// An association begins with a request, which may be a recorded one of a process that is long gone. Until something shows that its peer is
// alive (Association::confirmed), it is unconfirmed. There are at most kUnconfirmedMax of these; the oldest is dropped.
// Confirmed associations stay: association.h says why. Frames to an address are sealed in the association that was confirmed last for it.
//
// The source address of a frame and the id in it say which association opens it. Two peers of one address never have the same id. A
// process can choose a salt that gives it the id of another one, but a confirmed association stays.
//
// Frames that wait for an association are copies, few and short-lived: their flows retransmit them.
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
  Time asked_since{};                           ///< when the first of the unanswered requests left
  unsigned requests = 0;                        ///< since the last answer
  std::array<std::uint64_t, 16> keep_alives{};  ///< counters of the last ones sent; 0: answered
  unsigned next_keep_alive = 0;
  std::vector<WaitingFrame> waiting;
  Time waiting_since{};
};

class AssociationTable {
 public:
  Route& route(const SocketAddress& address) { return routes_[address]; }
  /// Null if this side has sent nothing there and nothing authentic has come from there.
  Route* find_route(const SocketAddress& address);
  /// The association whose frames come from this address under this id; null if there is none.
  Association* find(const SocketAddress& from, std::uint32_t id) const;
  /// By its salt and key; null if there is none.
  Association* find(const Salt& salt, const KeyId& key);
  /// Adds one that is not confirmed. Null: a confirmed peer has one of its addresses and its id.
  Association* add(std::unique_ptr<Association> association);
  /// Confirms the association; from now on frames to the peer's addresses are sealed in it.
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
