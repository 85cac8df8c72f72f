// What can be read of an endpoint from outside: its counters, its peers, which carrier reaches each and why.
// Values of one moment, collected under the engine lock; the paths of messages keep and count nothing for it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/units.h"
#include "protocol/pending_operations.h"
#include "reliability/flow.h"

namespace cluster::protocol {
class Messenger;
}

namespace cluster::engine {

class PeerTable;
struct EngineParts;
struct Peer;

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

struct OperationStats {
  protocol::PendingOperation what;
  SocketAddress peer;  ///< empty: any
};

/// One that waits for its receive.
struct MessageStats {
  protocol::StoredMessage what;
  SocketAddress peer;
};

struct EndpointStats {
  Time now{};
  Time since{};  ///< when the endpoint was opened
  Counters counters;
  std::size_t unexpected = 0;  ///< messages that wait for their receive
  std::vector<PeerStats> peers;
  std::vector<OperationStats> operations;  ///< of the application, under way; at most kOperationsMax
  std::size_t operations_under_way = 0;
  std::vector<MessageStats> messages;  ///< the first of `unexpected`; at most kMessagesMax
  Duration application_away{};         ///< so long, at least, the application has taken no turn; zero: not known
};

/// More are only counted.
inline constexpr std::size_t kOperationsMax = 10'000;
inline constexpr std::size_t kMessagesMax = 64;

/// As PeerStats::carrier.
const char* carrier_name(const EngineParts& parts, const Peer& peer);
EndpointStats collect_stats(const EngineParts& parts, const PeerTable& peers,
                            const protocol::Messenger& messenger, Time since);

}  // namespace cluster::engine
