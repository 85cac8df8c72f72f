// The table of transports, nearest first: which ones an endpoint has. A new transport is added to the table in
// transports.cc; the engine then asks it what it asks all of them (transport/transport.h).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/engine_parts.h"
#include "transport/transport.h"
#include "transport/transport_context.h"

namespace cluster::shm {
class ShmTransport;
}
namespace cluster::network {
class NetworkTransport;
}

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
