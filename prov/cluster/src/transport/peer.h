// A peer: an endpoint with which this one has exchanged anything, or wants to. Here are its channel (what the protocol knows)
// and its reach (what the engine knows), whichever transport reaches it. What a transport keeps about it is in `parts`,
// and only that transport reads it.
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

/// It has no carrier, and nothing tells against opening one.
struct NotMet {
  bool departed = false;  ///< it has closed in an orderly way: receives wait for its next incarnation
};
/// A transport has begun to open a carrier, which needs another attempt.
struct OpeningSoon {};
/// Peer::channel.carrier is set, and belongs to this transport.
struct Reached {
  Transport* by;
};
/// Operations with it fail at once, until it comes back.
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
  static constexpr std::size_t kTransportsMax = 4;

  protocol::Channel channel;
  carrier::Lane* lane = nullptr;  ///< null: closed. Every operation on the general road closes it
  bool failed = false;            ///< marked in PeerTable: it is about to be closed
  bool has_aliases = false;       ///< further addresses lead to it
  Reach reach;                    ///< (PeerReach)
  std::string reach_reason;       ///< why it is reached the way it is, or not
  struct Handle {
    std::uint64_t value = protocol::kAddrNotAvail;
    std::uint64_t generation = ~std::uint64_t{0};  ///< of the address table when it was looked up
  } handle;
  Time awaited_since{};  ///< a receive waits for it alone, and there is no carrier; Time{}: not
  Time closed_at{};      ///< when it was closed last
  std::array<std::unique_ptr<TransportPeer>, kTransportsMax> parts;

  const SocketAddress& name() const { return channel.name; }
  /// Null if it has no carrier.
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
