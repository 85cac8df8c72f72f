// The peers of one endpoint: every endpoint it has exchanged anything with, by name and by address handle.
//
// A peer in the address vector is kept for the life of the endpoint. Another one is kept as long as something
// refers to it (a stored message), or late frames of its last session may arrive; AdmissionControl forgets it
// afterwards. What is expensive about a peer, its rings or its flow, comes and goes.
//
// Invariants: a channel has a carrier exactly while its peer can be posted to. A peer that has failed is only
// marked here; PeerCloser closes it when no component iterates over peers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/units.h"
#include "engine/address_table.h"
#include "engine/closed_sessions.h"
#include "engine/peer_limit.h"
#include "engine/timer_heap.h"
#include "protocol/channel.h"
#include "protocol/completion.h"
#include "protocol/messenger.h"
#include "reliability/burst.h"
#include "reliability/flow.h"
#include "reliability/frame_body.h"
#include "shm/local_listener.h"

namespace cluster::engine {

struct Peer {
  protocol::Channel channel;
  std::unique_ptr<reliability::Flow> flow;  ///< over the network
  /// A session for the peer's next incarnation while the present one may still be alive. It becomes `flow` once
  /// the peer has addressed it, which shows that it receives what is sent to its address.
  struct Pending {
    std::unique_ptr<reliability::Flow> flow;
    Time since{};
  } pending;
  std::unique_ptr<shm::Outbox> outbox;  ///< through shared memory, towards the peer
  std::unique_ptr<shm::Inbox> inbox;    ///< and from it
  struct Local {
    shm::Outbox* lane = nullptr;     ///< the outbox, while the fast lane to the peer is open (fast_lane.h)
    shm::RingInbox* ring = nullptr;  ///< the inbox, if it is a ring
    bool active = false;  ///< something has come through the inbox since the last review
    std::uint8_t patience = 0;  ///< how many looks more a message that no receive waits for stays in the ring
    bool held = false;    ///< the next segment of the ring waits for the unexpected store
    bool failed = false;  ///< marked in PeerTable: it is about to be closed
    /// A ring to it, while its queue of connections is full.
    struct Connecting {
      Time since{};
      Time next_try{};
    } connecting;
  } local;
  std::string carrier_reason;  ///< why it is reached the way it is
  struct Handle {
    std::uint64_t value = protocol::kAddrNotAvail;
    std::uint64_t generation = ~std::uint64_t{0};  ///< of the address table when it was looked up
  } handle;
  struct Absence {
    Status lost = Status::ok;  ///< why it was lost, as long as it has not come back (lost_peers.h)
    Time lost_at{};            ///< when that was
    bool departed = false;     ///< it has closed in an orderly way: receives wait for its next incarnation
    Time awaited_since{};      ///< a receive waits for it alone, and there is no carrier; Time{}: not
    /// Its kernel has been asked whether its process exists, which costs a connection.
    enum class Probed : std::uint8_t { no, as_member, as_other } probed = Probed::no;
  } absence;
  /// The endpoint of its process that its opening names (sibling_check.h), while its session lasts.
  struct Sibling {
    SocketAddress name;         ///< empty: none
    std::uint32_t session = 0;  ///< of the peer, for which the claim counts
    enum class Claim : std::uint8_t { none, made, confirmed } claim = Claim::none;
    bool member = false;  ///< when the address vector had this generation:
    std::uint64_t generation = ~std::uint64_t{0};
    Time next_request{};
    Time awaited_since{};  ///< the first frame of the session that was left to be repeated; Time{}: none was
  };
  struct Contact {
    Sibling sibling;
    bool has_aliases = false;  ///< further addresses lead to it
    std::size_t held = 0;      ///< bytes held for it as an unknown source (AdmissionControl)
    PeerLimit answers;         ///< to frames that ask for a session in its name
    PeerLimit resets;          ///< to frames of sessions that are not here, from its address
  } contact;
  Time heard_at{};  ///< last frame over the network of its session, or that asked for it
  Timer timer;      ///< of its flow
  ClosedSessions closed_sessions;
  bool self = false;         ///< this endpoint itself
  bool tx_pending = false;   ///< in TxScheduler's list: its flow has something to do before this turn ends

  const SocketAddress& name() const { return channel.name; }
  /// Its session was named to the sender of a frame that asked for one, and no more: neither side has used it.
  bool half_open() const { return flow != nullptr && !flow->handshake().knows_peer() && flow->queue().drained(); }
};

class PeerTable final : public protocol::AddressHandles {
 public:
  /// `frame_max`: of the longest frames that the peers' flows send.
  explicit PeerTable(std::size_t frame_max) : bodies_(frame_max) { failed_.reserve(kFailedAtOnce); }
  /// Must come before the first handle is used.
  void attach(const AddressTable& addresses) { addresses_ = &addresses; }
  /// Null before that.
  const AddressTable* attached() const { return addresses_; }

  Peer& find_or_add(const SocketAddress& name);
  Peer* find(const SocketAddress& name);
  /// While its session lasts another address leads to the peer, too, unless it leads to another one already.
  void add_alias(Peer& peer, const SocketAddress& address);
  void remove_aliases(Peer& peer);
  bool is_alias(const SocketAddress& address, const Peer& peer) const;
  bool in_address_vector(const SocketAddress& name) const {
    return addresses_ != nullptr && addresses_->find(name).has_value();
  }
  /// True if it is in the address vector or has a flow already.
  bool known(const SocketAddress& name);
  /// Removes the peers for which gone(peer) is true; nothing may refer to them.
  template <typename Gone>
  void forget(Gone&& gone) {
    std::erase_if(all_, [&](const std::unique_ptr<Peer>& peer) {
      if (!gone(*peer)) return false;
      by_name_.erase(peer->name());
      return true;
    });
  }
  /// Null if the handle is not in the address vector. Constant time once the handle has been used.
  Peer* by_handle(std::uint64_t handle) {
    Peer* const peer = used_before(handle);
    return peer != nullptr ? peer : look_up(handle);
  }
  /// Null as well if the handle has not been used since the address vector changed.
  Peer* used_before(std::uint64_t handle) const {
    const bool known = generation_ == addresses_->generation() && handle < by_handle_.size();
    return known ? by_handle_[handle] : nullptr;
  }
  std::uint64_t handle_of(const protocol::Channel& channel) override;
  bool is_member(const protocol::Channel& channel) override;
  /// True if it is in the address vector, or a validated address of a peer that is.
  bool is_member_name(const SocketAddress& name);
  const std::vector<std::unique_ptr<Peer>>& all() const { return all_; }
  /// Bytes held for unknown sources together.
  std::size_t unknown_bytes() const { return unknown_bytes_; }
  void set_held(Peer& peer, std::size_t bytes) { unknown_bytes_ += bytes - std::exchange(peer.contact.held, bytes); }

  struct Failure {
    Peer* peer;
    Status status;
  };
  /// The peer shall be closed before the turn ends. The first status counts.
  void mark_failed(Peer& peer, Status status);
  void clear_failed(Peer& peer);
  const std::vector<Failure>& failed() const { return failed_; }

  /// The memory of the frames that the peers' flows send.
  reliability::BodyPool& bodies() { return bodies_; }
  reliability::Burst& burst() { return burst_; }

 private:
  /// Peers fail also because there is no memory.
  static constexpr std::size_t kFailedAtOnce = 4;

  Peer* look_up(std::uint64_t handle);
  bool is_member_by_alias(const Peer& peer) const;
  bool has_member_sibling(Peer& peer);

  const AddressTable* addresses_ = nullptr;
  std::uint64_t generation_ = 0;  ///< of addresses_, when by_handle_ was filled
  std::vector<Peer*> by_handle_;
  std::unordered_map<SocketAddress, Peer*, SocketAddressHash> by_name_;
  std::vector<Failure> failed_;
  std::size_t unknown_bytes_ = 0;
  reliability::BodyPool bodies_;
  reliability::Burst burst_;
  std::vector<std::unique_ptr<Peer>> all_;  ///< behind bodies_: flows give their frames back
};

}  // namespace cluster::engine
