// Peers: everyone this endpoint has had to do with, by name, by address handle and by session. Whoever is
// in the address vector is remembered for the life of the endpoint, others as long as something names
// them (a stored message) or late frames of their last session may come; what is expensive about a peer, its
// ring or its flow, comes and goes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/units.h"
#include "engine/address_table.h"
#include "engine/timer_heap.h"
#include "protocol/channel.h"
#include "protocol/completion.h"
#include "reliability/flow.h"
#include "reliability/handshake.h"
#include "shm/local_listener.h"

namespace cluster::engine {

/// What is remembered of sessions that are over: late copies of their first frames must not begin them again,
/// for what those bring may have been handed on already.
class ClosedSessions {
 public:
  /// Whoever never showed that it hears us may have made its epoch up: then that session alone is refused.
  void note(const reliability::PeerSession& session, bool confirmed) {
    if (confirmed) {
      until_ = std::max(until_, session.epoch);
    } else {
      unconfirmed_[next_++ % unconfirmed_.size()] = session;
    }
    last_ = session.epoch;
  }
  bool covers(const reliability::PeerSession& other) const {
    return other.epoch <= until_ ||
           std::any_of(unconfirmed_.begin(), unconfirmed_.end(),
                       [&](const reliability::PeerSession& session) {
                         return other.epoch == session.epoch && other.session == session.session;
                       });
  }
  bool covers(const wire::Opening& opening) const {
    return covers(reliability::PeerSession{opening.epoch, opening.session});
  }
  /// Whoever calls anew needs a larger one.
  std::uint64_t epoch() const { return std::max(until_, last_); }

 private:
  std::uint64_t until_ = 0;
  std::uint64_t last_ = 0;
  std::array<reliability::PeerSession, 8> unconfirmed_{};  ///< the last ones
  std::size_t next_ = 0;
};

struct Peer {
  protocol::Channel channel;
  std::unique_ptr<reliability::Flow> flow;  ///< over the network
  /// Says that it is the peer's next life while the present one may still be alive: becomes `flow` once it
  /// has shown that it hears what is sent to the peer's address.
  std::unique_ptr<reliability::Flow> suitor;
  Time suitor_since{};
  std::unique_ptr<shm::Outbox> outbox;  ///< through shared memory, towards the peer
  std::unique_ptr<shm::Inbox> inbox;    ///< and from it
  std::string why;                      ///< this path, in words
  link::Path way;                       ///< endpoints of datagrams: how it is reached
  std::uint64_t handle = protocol::kAddrNotAvail;
  std::uint64_t handle_generation = ~std::uint64_t{0};
  Time heard_at{};  ///< last frame over the network that shows that it hears us, or begins
  Time lost_at{};   ///< end of its last session
  Timer timer;      ///< of its flow
  ClosedSessions past;
  bool self = false;
  bool aliased = false;    ///< further addresses lead here, too
  bool spoke = false;      ///< something has come through its inbox since the last review
  bool touched = false;    ///< its flow has something to do before this turn ends
  bool held_back = false;  ///< on this node: its next segment waits for room in the store

  const SocketAddress& name() const { return channel.name; }
};

class PeerTable {
 public:
  void attach(const AddressTable& book) { book_ = &book; }

  /// The peer of that name, made if need be.
  Peer& named(const SocketAddress& name);
  Peer* find(const SocketAddress& name);
  /// While its session lasts another address leads to the peer, too, unless somebody has it already.
  void alias(Peer& peer, const SocketAddress& address) { by_name_.try_emplace(address, &peer); }
  void forget_aliases(Peer& peer);
  bool is_alias(const SocketAddress& address, const Peer& peer) const;
  /// True if it is in the address vector.
  bool known(const SocketAddress& name) const { return book_ != nullptr && book_->find(name).has_value(); }
  /// True if it is in the address vector or has a flow already.
  bool expected(const SocketAddress& name);
  /// Forgets those for whom gone(peer) is true; nothing may name them.
  template <typename Gone>
  void forget(Gone&& gone) {
    std::erase_if(all_, [&](const std::unique_ptr<Peer>& peer) {
      if (!gone(*peer)) return false;
      by_name_.erase(peer->name());
      return true;
    });
  }
  /// Null if the handle names nobody. Constant time once the handle has been used.
  Peer* by_handle(std::uint64_t handle) {
    if (generation_ == book_->generation() && handle < by_handle_.size() && by_handle_[handle] != nullptr) {
      return by_handle_[handle];
    }
    return look_up(handle);
  }
  std::uint64_t handle_of(Peer& peer) const;

  Peer* by_session(std::uint32_t session);
  void add_session(std::uint32_t session, Peer& peer) { sessions_[session] = &peer; }
  void remove_session(std::uint32_t session) { sessions_.erase(session); }

  const std::vector<std::unique_ptr<Peer>>& all() const { return all_; }

 private:
  Peer* look_up(std::uint64_t handle);

  const AddressTable* book_ = nullptr;
  std::uint64_t generation_ = 0;  ///< of the book, when by_handle_ was filled
  std::vector<Peer*> by_handle_;
  std::unordered_map<SocketAddress, Peer*, SocketAddressHash> by_name_;
  std::unordered_map<std::uint32_t, Peer*> sessions_;
  std::vector<std::unique_ptr<Peer>> all_;
};

}  // namespace cluster::engine
