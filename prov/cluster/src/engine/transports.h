// Which transports an endpoint has, nearest first. A new transport is added in transports.cc; the engine then asks it
// what it asks all of them (transport/transport.h).
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
  /// Transports that some messages reach by a way of their own; null: the endpoint has no such transport.
  shm::ShmTransport* lane = nullptr;               ///< short messages inside the node
  network::NetworkTransport* datagrams = nullptr;  ///< an endpoint of datagrams uses nothing else
};

/// The arguments must outlive the result.
Transports make_transports(const EngineParts& parts, const transport::TransportContext& context);

}  // namespace cluster::engine
