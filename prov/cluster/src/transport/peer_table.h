// The peers of one endpoint, by name and by address handle: every endpoint with which it has exchanged data.
//
// A peer in the address vector is kept for the life of the endpoint. Another peer is kept while something
// refers to it (a stored message), or while late frames of its last session may arrive. Then AdmissionControl
// forgets it. The expensive parts of a peer, its rings or its flow, come and go.
//
// Invariants: a channel has a carrier exactly while this endpoint can post to its peer. A failed peer is only
// marked here. PeerReach closes it when no component iterates over peers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/end_of_memory.h"
#include "protocol/context.h"
#include "transport/address_table.h"
#include "transport/peer.h"
#include "transport/transport.h"

namespace cluster::transport {

class PeerTable final : public protocol::AddressHandles {
 public:
  /// Must come before the first handle is used.
  void attach(const AddressTable& addresses) { addresses_ = &addresses; }
  /// Returns null before attach().
  const AddressTable* attached() const { return addresses_; }
  /// Sets the transports that may vouch for peers. The list outlives the table.
  void ask(std::span<Transport* const> transports) { transports_ = transports; }

  Peer& find_or_add(const SocketAddress& name);
  Peer* find(const SocketAddress& name);
  /// Makes this address lead to the peer as well while its session lasts, unless the address leads to another
  /// peer.
  void add_alias(Peer& peer, const SocketAddress& address);
  void remove_aliases(Peer& peer);
  bool is_alias(const SocketAddress& address, const Peer& peer) const;
  bool in_address_vector(const SocketAddress& name) const {
    return addresses_ != nullptr && addresses_->find(name).has_value();
  }
  /// True if the name is in the address vector, or a transport has met the peer.
  bool known(const SocketAddress& name);
  /// Removes the peers for which gone(peer) is true. Nothing may refer to them.
  template <typename Gone>
  void forget(Gone&& gone) {
    std::erase_if(all_, [&](const std::unique_ptr<Peer>& peer) {
      if (!gone(*peer)) return false;
      by_name_.erase(peer->name());
      return true;
    });
  }
  /// Returns the peer, or null if the handle is not in the address vector. Constant time once the handle has
  /// been used.
  Peer* by_handle(std::uint64_t handle) {
    Peer* const peer = used_before(handle);
    return peer != nullptr ? peer : look_up(handle);
  }
  /// Like by_handle(), but also returns null if the handle has not been used since the address vector
  /// changed.
  Peer* used_before(std::uint64_t handle) const {
    const bool known = generation_ == addresses_->generation() && handle < by_handle_.size();
    return known ? by_handle_[handle] : nullptr;
  }
  std::uint64_t handle_of(const protocol::Channel& channel) override;
  /// True if the peer is in the address vector, or a transport vouches for it.
  bool is_member(const protocol::Channel& channel) override;
  void lose(const protocol::Channel& channel) override { mark_failed(peer_of(channel), Status::no_memory); }
  bool is_member_name(const SocketAddress& name);
  /// True if a transport has anything open with the peer.
  bool held(const Peer& peer) const {
    return std::any_of(transports_.begin(), transports_.end(),
                       [&](const Transport* each) { return each->holds(peer); });
  }
  const std::vector<std::unique_ptr<Peer>>& all() const { return all_; }

  struct Failure {
    Peer* peer;
    Status status;
  };
  /// Marks the peer: it is closed before the turn ends. The first status counts.
  void mark_failed(Peer& peer, Status status);
  /// Does work for one peer. If there is no memory for it, marks the peer as lost and returns false
  /// (base/end_of_memory.h).
  template <typename Work>
  bool serve(Peer& peer, Work&& work) {
    if (enough_memory_for(work)) [[likely]]
      return true;
    mark_failed(peer, Status::no_memory);
    return false;
  }
  void clear_failed(Peer& peer);
  const std::vector<Failure>& failed() const { return failed_; }

 private:
  Peer* look_up(std::uint64_t handle);

  const AddressTable* addresses_ = nullptr;
  std::span<Transport* const> transports_;
  std::uint64_t generation_ = 0;  ///< of addresses_ when by_handle_ was filled
  std::vector<Peer*> by_handle_;
  std::unordered_map<SocketAddress, Peer*, SocketAddressHash> by_name_;
  std::vector<Failure> failed_;  ///< has a place for each peer: to fail needs no memory
  std::vector<std::unique_ptr<Peer>> all_;
};

}  // namespace cluster::transport
