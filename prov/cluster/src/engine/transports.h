// The transports of an endpoint, nearest first. The engine itself creates the transports self, shared memory
// and network. It uses parts of them that are not in the interface of a transport: the fast lane, the frame
// lanes, short turns, and datagrams. All other transports come from EngineParts::further_transports. In full
// turns, the event loop treats all transports alike (transport/transport.h).
#pragma once

#include <memory>
#include <vector>

#include "engine/engine_parts.h"
#include "network/network_transport.h"
#include "shm/shm_transport.h"
#include "transport/transport.h"
#include "transport/transport_context.h"

namespace cluster::engine {

struct Transports {
  std::vector<std::unique_ptr<transport::Transport>> all;
  /// The next members get some messages directly. They are null if the endpoint has no such transport.
  shm::ShmTransport* lane = nullptr;               ///< gets short messages inside the node
  network::NetworkTransport* network = nullptr;    ///< gets short messages between nodes
  network::NetworkTransport* datagrams = nullptr;  ///< gets all messages of an FI_EP_DGRAM endpoint
};

/// Creates the transports. The arguments must outlive the transports.
Transports make_transports(EngineParts& parts, const transport::TransportContext& context);

}  // namespace cluster::engine
