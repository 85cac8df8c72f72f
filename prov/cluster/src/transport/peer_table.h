// The peers of one endpoint, by name and by address handle. A peer is an endpoint with which this endpoint
// has exchanged or wants to exchange data.
//
// A peer in the address vector is kept until this endpoint closes. A peer outside the address vector is kept
// while something refers to it (for example a stored message), and while late frames of its last session may
// arrive. After that AdmissionControl deletes it. The expensive parts of a peer, its rings or its flow, exist
// only while a session or ring is open.
//
// Invariant: a channel has a carrier exactly while this endpoint can post to the peer. This table only marks
// a failed peer. PeerReach closes the peer later, when no component iterates over peers.
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
  /// Sets the address table. Must be called before the first handle is used.
  void attach(const AddressTable& addresses) { addresses_ = &addresses; }
  /// Returns null before attach().
  const AddressTable* attached() const { return addresses_; }
  /// Sets the transports that may vouch for peers. The list must outlive the table.
  void ask(std::span<Transport* const> transports) { transports_ = transports; }

  Peer& find_or_add(const SocketAddress& name);
  Peer* find(const SocketAddress& name);
  /// Makes find() return the peer for this address, too, until remove_aliases() is called. Changes nothing if
  /// the address already leads to another peer.
  void add_alias(Peer& peer, const SocketAddress& address);
  void remove_aliases(Peer& peer);
  bool is_alias(const SocketAddress& address, const Peer& peer) const;
  bool in_address_vector(const SocketAddress& name) const {
    return addresses_ != nullptr && addresses_->find(name).has_value();
  }
  /// Returns true if the name is in the address vector, or if a transport has met the peer
  /// (Transport::has_met).
  bool known(const SocketAddress& name);
  /// Removes the peers for which gone(peer) is true. The caller must make sure that nothing refers to these
  /// peers.
  template <typename Gone>
  void forget(Gone&& gone) {
    std::erase_if(all_, [&](const std::unique_ptr<Peer>& peer) {
      if (!gone(*peer)) return false;
      by_name_.erase(peer->name());
      return true;
    });
  }
  /// Returns the peer, or null if the handle is not in the address vector. Only the first call for a handle
  /// after a change of the address vector has to search.
  Peer* by_handle(std::uint64_t handle) {
    Peer* const peer = used_before(handle);
    return peer != nullptr ? peer : look_up(handle);
  }
  /// Like by_handle(), but never searches: also returns null if by_handle() was not called for this handle
  /// since the address vector last changed.
  Peer* used_before(std::uint64_t handle) const {
    const bool known = generation_ == addresses_->generation() && handle < by_handle_.size();
    return known ? by_handle_[handle] : nullptr;
  }
  std::uint64_t handle_of(const protocol::Channel& channel) override { return current_handle(channel).value; }
  std::uint64_t source_of(const protocol::Channel& channel) override {
    return current_handle(channel).source;
  }
  /// Returns true if the peer is in the address vector, or if a transport vouches for it.
  bool is_member(const protocol::Channel& channel) override;
  void lose(const protocol::Channel& channel) override { mark_failed(peer_of(channel), Status::no_memory); }
  bool is_member_name(const SocketAddress& name);
  /// Returns true if a transport has anything open with the peer.
  bool held(const Peer& peer) const {
    return std::any_of(transports_.begin(), transports_.end(),
                       [&](const Transport* each) { return each->holds(peer); });
  }
  const std::vector<std::unique_ptr<Peer>>& all() const { return all_; }

  struct Failure {
    Peer* peer;
    Status status;
  };
  /// Marks the peer as failed. The peer is closed before the turn ends. If a peer is marked several times,
  /// the first status counts.
  void mark_failed(Peer& peer, Status status);
  /// Does `work`, which concerns only this peer. If memory runs out, marks the peer as failed and returns
  /// false (base/end_of_memory.h).
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
  const Peer::Handle& current_handle(const protocol::Channel& channel) {
    Peer& peer = peer_of(channel);
    if (peer.handle.generation != addresses_->generation()) [[unlikely]]
      renew_handle(peer);
    return peer.handle;
  }
  void renew_handle(Peer& peer) const;

  const AddressTable* addresses_ = nullptr;
  std::span<Transport* const> transports_;
  std::uint64_t generation_ = 0;  ///< the generation of addresses_ to which by_handle_ belongs
  std::vector<Peer*> by_handle_;
  std::unordered_map<SocketAddress, Peer*, SocketAddressHash> by_name_;
  std::vector<Failure> failed_;  ///< has capacity for all peers, so mark_failed() needs no memory
  std::vector<std::unique_ptr<Peer>> all_;
};

}  // namespace cluster::transport
