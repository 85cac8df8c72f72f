// The associations of one endpoint, found by the address that frames go to, and by the sender of frames that
// come.
//
// An association begins with a request, which may be a recording from a process that is long gone. Until
// something shows that the peer is alive (Association::confirmed), the association is unconfirmed. There are
// at most kUnconfirmedMax unconfirmed associations; the oldest is dropped. Confirmed associations stay
// (association.h says why). Frames to an address are sealed in the association that was last confirmed for
// that address.
//
// The source address of a frame and the id in the frame say which association opens it. Two peers of one
// address never have the same id. A process can choose a salt that gives it the id of another process, but it
// cannot displace a confirmed association.
//
// Frames that wait for an association are copies. They are few and short-lived, since flows retransmit their
// frames.
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

/// What this side knows about one address of a peer.
struct Route {
  Association* current = nullptr;  ///< seals frames to the address; null: none yet
  std::uint64_t request = 0;       ///< number of the unanswered request; 0: none
  Time next_request{};
  Duration request_interval{};
  Time asked_since{};                           ///< when the first of the unanswered requests left
  unsigned requests = 0;                        ///< requests since the last answer
  std::array<std::uint64_t, 16> keep_alives{};  ///< counters of the last keep-alives sent; 0: answered
  unsigned next_keep_alive = 0;
  std::vector<WaitingFrame> waiting;
  Time waiting_since{};
};

class AssociationTable {
 public:
  Route& route(const SocketAddress& address) { return routes_[address]; }
  /// Returns the route. Null if this side has sent nothing there and nothing authentic has come from there.
  Route* find_route(const SocketAddress& address);
  /// Returns the association whose frames come from this address with this id, or null.
  Association* find(const SocketAddress& from, std::uint32_t id) const;
  /// Returns the association with this salt and key, or null.
  Association* find(const Salt& salt, const KeyId& key);
  /// Adds an unconfirmed association. Returns null if a confirmed peer has the same id and one of the same
  /// addresses.
  Association* add(std::unique_ptr<Association> association);
  /// Confirms the association, and seals frames to the peer's addresses in it from now on.
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
  /// Drops unconfirmed associations with the same id and one of the same addresses. Returns false if one of
  /// them is confirmed.
  bool has_id_alone(const Association& next);

  std::unordered_map<SocketAddress, Route, SocketAddressHash> routes_;
  std::unordered_map<SocketAddress, std::vector<Association*>, SocketAddressHash> senders_;  ///< by address
  std::unordered_map<Name, std::unique_ptr<Association>, NameHash> associations_;
  std::deque<Name> unconfirmed_;  ///< oldest first; some may have been confirmed or dropped since
};

}  // namespace cluster::seal
