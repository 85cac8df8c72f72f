// The associations of one endpoint. For a frame to send, the table finds the association by the destination.
// For a frame that has arrived, it finds the association by the sender.
//
// An association may begin with a request that somebody has recorded from a process that no longer exists. So
// an association is unconfirmed until something shows that the peer is alive (Association::confirmed). If
// there are more than kUnconfirmedMax unconfirmed associations, the oldest is dropped. Confirmed associations
// are never dropped (association.h says why). Frames to an address are sealed in the association that was
// last made current for that address.
//
// The source address of a frame and the id in the frame determine which association opens it. Two
// associations with the same address never have the same id. A process can choose its salt so that it has the
// id of another process, but it cannot displace a confirmed association.
//
// Behind an address translator, a peer's frames arrive from a source that the peer does not list
// (translation.h). Such a source opens frames of the associations that have the id of the frame, but changes
// no route by itself.
//
// Frames that wait for an association are copies. Only a few of them are kept, and only for a short time,
// because flows retransmit their frames.
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
  Association* current = nullptr;  ///< the association that seals frames to the address, or null
  std::uint64_t request = 0;       ///< number of the last request while it is unanswered, else 0
  std::uint8_t request_link = 0;   ///< the link over which it left
  Time next_request{};
  Duration request_interval{};
  Time asked_since{};     ///< when the first unanswered request left
  unsigned requests = 0;  ///< how many requests have left since the last answer
  /// Counters of the last keep-alives that this side has sent, 0 for an answered one.
  std::array<std::uint64_t, 16> keep_alives{};
  unsigned next_keep_alive = 0;
  /// Association::newest_opened() when the last keep-alive was answered from an unknown source, and how many
  /// such answers have come since then (SealedLink::ask_who_answers()).
  std::uint64_t opened = 0;
  unsigned answers_since_opened = 0;
  std::vector<WaitingFrame> waiting;
  Time waiting_since{};
};

class AssociationTable {
 public:
  /// Returns the route to this address. Creates it if there is none.
  Route& route(const SocketAddress& address) { return routes_[address]; }
  /// Returns the route to this address. Returns null if this side has sent nothing to the address, and
  /// nothing authentic has arrived from it.
  Route* find_route(const SocketAddress& address);
  /// Returns the association that opens frames from this address with this id, or null.
  Association* find(const SocketAddress& from, std::uint32_t id) const;
  /// Returns the association with this salt and key, or null.
  Association* find(const Salt& salt, const KeyId& key);
  /// Adds an unconfirmed association. Returns null if a confirmed association has the same id and shares an
  /// address with the new one.
  Association* add(std::unique_ptr<Association> association);
  /// Confirms the association, which from then on seals the frames to the addresses of the peer. `source` is
  /// the listed address that has shown that the peer is alive. If another peer is reached by an address that
  /// is its name, this address stays with that peer, unless it is `source`.
  void make_current(Association& association, const SocketAddress& source);

  /// Returns an association that opens frames with this id, whatever addresses its peer lists, or null.
  Association* find_by_id(std::uint32_t id) const;
  /// Returns the association whose peer has proved that it receives frames at this address, which it does not
  /// list. Returns null if there is none.
  Association* behind(const SocketAddress& source) const;
  /// Returns true if another peer lists the address. The peers of unconfirmed associations do not count.
  bool lists_it(const SocketAddress& address, const Association& except) const;
  /// Called when the peer has proved that it receives frames at `source`. Frames to the listed address that
  /// the source stands for are sealed by this association from then on, and go to the source. Changes no
  /// other route.
  void prove(Association& association, ObservedSource& source);

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
  void seal_by(Association& association, Route& route);
  /// Looks for associations that have the same id as `next` and share an address with it. Drops those that
  /// are unconfirmed. Returns false if one of them is confirmed.
  bool has_id_alone(const Association& next);

  std::unordered_map<SocketAddress, Route, SocketAddressHash> routes_;
  /// The associations that open frames from each source address.
  std::unordered_map<SocketAddress, std::vector<Association*>, SocketAddressHash> senders_;
  std::unordered_map<std::uint32_t, std::vector<Association*>> ids_;
  /// The associations whose peers receive frames at an address that they do not list.
  std::unordered_map<SocketAddress, Association*, SocketAddressHash> behind_;
  std::unordered_map<Name, std::unique_ptr<Association>, NameHash> associations_;
  std::deque<Name> unconfirmed_;  ///< oldest first; some of them may meanwhile be confirmed
};

}  // namespace cluster::seal
