// A peer: an endpoint with which this endpoint has exchanged data or wants to. The protocol keeps its state
// about the peer in `channel`. `reach` says whether the peer is reached, and through which transport. Each
// transport keeps its own state about the peer in its element of `parts`. No other component reads that
// element.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "base/address.h"
#include "base/status.h"
#include "base/units.h"
#include "carrier/carrier.h"
#include "protocol/channel.h"
#include "protocol/completion.h"

namespace cluster::transport {

class Transport;

/// The peer has no carrier, and the next operation may open one.
struct NotMet {
  /// The peer has closed in an orderly way, so receives wait for its next incarnation.
  bool departed = false;
};
/// A transport has begun to open a carrier. PeerReach::open() must be called again.
struct OpeningSoon {};
/// Peer::channel.carrier is set, and belongs to this transport.
struct Reached {
  Transport* by;
};
/// The peer was lost. Operations with the peer fail at once, until the peer is back.
struct Lost {
  Status cause;
  Time since;
};
using Reach = std::variant<NotMet, OpeningSoon, Reached, Lost>;

/// The base of the state that one transport keeps about one peer.
struct TransportPeer {
  virtual ~TransportPeer() = default;
};

struct Peer {
  static constexpr std::size_t kTransportsMax = 4;  ///< PeerReach::add() refuses more

  protocol::Channel channel;
  /// Null while the lane is closed; every operation that does not take the lane closes it.
  carrier::Lane* lane = nullptr;
  /// PeerTable::mark_failed() was called: the peer is closed before the turn ends.
  bool failed = false;
  bool has_aliases = false;  ///< PeerTable finds the peer under other addresses as well
  Reach reach;               ///< only PeerReach changes this
  std::string reach_reason;  ///< why a transport reaches the peer, or why none does
  struct Handle {
    std::uint64_t value = protocol::kAddrNotAvail;
    std::uint64_t source = protocol::kAddrNotAvail;  ///< what completions report as source of its messages
    /// The generation of the address table when `value` and `source` were looked up.
    std::uint64_t generation = ~std::uint64_t{0};
  } handle;
  /// When this endpoint found a receive that waits only for this peer while the peer has no carrier. Time{}
  /// if this endpoint has found no such receive.
  Time awaited_since{};
  Time closed_at{};  ///< when the peer was last closed
  std::array<std::unique_ptr<TransportPeer>, kTransportsMax> parts;

  const SocketAddress& name() const { return channel.name; }
  /// Returns the transport that reaches the peer, or null if it has no carrier.
  Transport* transport() const {
    const Reached* const reached = std::get_if<Reached>(&reach);
    return reached != nullptr ? reached->by : nullptr;
  }
  const Lost* lost() const { return std::get_if<Lost>(&reach); }
  bool departed() const {
    const NotMet* const not_met = std::get_if<NotMet>(&reach);
    return not_met != nullptr && not_met->departed;
  }
};

inline Peer& peer_of(const protocol::Channel& channel) { return *static_cast<Peer*>(channel.owner); }

}  // namespace cluster::transport
