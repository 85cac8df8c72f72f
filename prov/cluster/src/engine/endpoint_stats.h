// The state of an endpoint for reports: its counters and its peers. For each peer, it says which carrier
// reaches the peer, and why. All values belong to one moment, because they are collected under the engine
// lock. They add no work to the transmission and arrival of messages.
#pragma once

#include <span>
#include <vector>

#include "base/counters.h"
#include "base/units.h"
#include "engine/engine_parts.h"
#include "protocol/messenger.h"
#include "protocol/pending_operations.h"
#include "transport/device_stats.h"
#include "transport/peer_stats.h"
#include "transport/peer_table.h"

namespace cluster::engine {

using transport::PeerStats;

struct EndpointStats {
  Time now{};
  Time since{};  ///< when the endpoint was opened
  Counters counters;
  std::size_t unexpected = 0;  ///< messages that wait for a matching receive
  std::vector<PeerStats> peers;
  std::vector<transport::DeviceStats> devices;  ///< the RDMA devices that read what is long
  std::vector<protocol::PendingOperation>
      operations;  ///< the application's operations in progress; at most kOperationsMax
  std::size_t operations_under_way = 0;
  std::vector<protocol::StoredMessage> messages;  ///< the first kMessagesMax of the unexpected messages
  Duration application_away{};  ///< the application has taken no turn for at least this time; zero if unknown
};

/// The largest numbers of entries in `operations` and `messages`. Further entries are only counted.
inline constexpr std::size_t kOperationsMax = 10'000;
inline constexpr std::size_t kMessagesMax = 64;

/// Returns the name for PeerStats::carrier.
const char* carrier_name(const EngineParts& parts, const transport::Peer& peer);
EndpointStats collect_stats(const EngineParts& parts, const transport::PeerTable& peers,
                            std::span<transport::Transport* const> transports,
                            const protocol::Messenger& messenger, Time since);

}  // namespace cluster::engine
