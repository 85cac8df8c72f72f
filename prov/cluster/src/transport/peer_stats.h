// What can be read of a peer from outside. Values of one moment, collected under the engine lock; the paths of messages keep
// and count nothing for it.
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
    bool single_copy = false;  ///< the peer's memory is in reach
    bool unread = false;       ///< the peer has not taken everything yet
  };
  std::optional<Rings> rings;
  std::size_t unexpected = 0;     ///< messages of it that wait for their receive
  std::uint64_t credit_left = 0;  ///< eager bytes, charges included, that may be sent to it
  std::uint64_t credit_owed = 0;  ///< the same that it has sent here and has not been granted again
  std::size_t footprint = 0;      ///< bytes of memory held for the peer; of rings, what is mapped
  Status lost = Status::ok;       ///< why it was lost, as long as it has not come back...
  Time lost_at{};                 ///< ...and when
};

}  // namespace cluster::transport
