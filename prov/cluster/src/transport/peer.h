// A peer: an endpoint with which this one has exchanged data, or wants to. A peer has a channel (what the
// protocol knows) and a reach (what the engine knows), whichever transport reaches it. `parts` holds what
// each transport keeps about the peer, and only that transport reads it.
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

/// The peer has no carrier, and nothing forbids opening one.
struct NotMet {
  bool departed = false;  ///< the peer has closed in an orderly way: receives wait for its next incarnation
};
/// A transport has begun to open a carrier, and needs another attempt.
struct OpeningSoon {};
/// Peer::channel.carrier is set, and belongs to this transport.
struct Reached {
  Transport* by;
};
/// Operations with the peer fail at once, until it comes back.
struct Lost {
  Status cause;
  Time since;
};
using Reach = std::variant<NotMet, OpeningSoon, Reached, Lost>;

/// What one transport keeps about one peer.
struct TransportPeer {
  virtual ~TransportPeer() = default;
};

struct Peer {
  static constexpr std::size_t kTransportsMax = 4;  ///< PeerReach::add() refuses more

  protocol::Channel channel;
  carrier::Lane* lane = nullptr;  ///< null: closed; every operation outside the fast lane closes it
  bool failed = false;            ///< marked in PeerTable; the peer is about to be closed
  bool has_aliases = false;       ///< other addresses lead to it as well
  Reach reach;                    ///< PeerReach changes it
  std::string reach_reason;       ///< why a transport reaches the peer, or why none does
  struct Handle {
    std::uint64_t value = protocol::kAddrNotAvail;
    std::uint64_t generation = ~std::uint64_t{0};  ///< of the address table at the lookup
  } handle;
  /// Since when a receive waits for this peer alone without a carrier; Time{}: none waits.
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
