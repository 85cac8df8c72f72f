// The state of a peer for reports: values of one moment, collected under the engine lock. Sending and
// receiving messages costs nothing extra for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/address.h"
#include "base/status.h"
#include "base/units.h"
#include "reliability/flow_stats.h"

namespace cluster::transport {

struct PeerStats {
  SocketAddress name;
  const char* carrier = "";  ///< the name of a link, "shm", "self", or "none": a literal
  std::string carrier_reason;
  std::optional<reliability::FlowStats> flow;
  struct Rings {
    bool single_copy = false;  ///< this process can access the peer's memory
    bool unread = false;       ///< the peer has not read everything yet
  };
  std::optional<Rings> rings;
  std::size_t unexpected = 0;  ///< messages of the peer that wait for their receive
  /// Eager bytes, charges included, that this side may still send to the peer.
  std::uint64_t credit_left = 0;
  /// Eager bytes, charges included, that the peer has sent and that were not granted again.
  std::uint64_t credit_owed = 0;
  std::size_t footprint = 0;  ///< bytes of memory held for the peer; for rings, the mapped size
  Status lost = Status::ok;   ///< why the peer was lost, until it comes back...
  Time lost_at{};             ///< ...and when
};

}  // namespace cluster::transport
