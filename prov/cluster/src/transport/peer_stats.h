// The state of a peer for reports. All values belong to one moment, because they are collected under the
// engine lock. They add no work to the transmission and arrival of messages.
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
  const char* carrier = "";  ///< a string literal: the name of a link, "shm", "self", or "none"
  std::string carrier_reason;
  std::optional<reliability::FlowStats> flow;
  struct Rings {
    bool single_copy = false;  ///< this process can access the peer's memory
    bool unread = false;       ///< the peer has not yet read all segments
  };
  std::optional<Rings> rings;
  std::size_t unexpected = 0;  ///< messages from the peer that wait for a matching receive
  /// Credit: eager bytes, including the charge per message, that this side may still send to the peer.
  std::uint64_t credit_left = 0;
  /// Eager bytes, including the charge per message, that the peer has sent and for which this side has not
  /// yet granted new credit.
  std::uint64_t credit_owed = 0;
  std::size_t footprint = 0;  ///< how many bytes of memory are held for the peer; for rings, the mapped size
  Status lost = Status::ok;   ///< why the peer was lost; ok if it is not lost
  Time lost_at{};             ///< when the peer was lost
};

}  // namespace cluster::transport
