#include "engine/transports.h"

#include <utility>

#include "network/network_transport.h"
#include "self/self_transport.h"
#include "shm/shm_transport.h"

namespace cluster::engine {
namespace {

/// Null if the endpoint has no such transport.
using Make = std::unique_ptr<transport::Transport> (*)(const EngineParts&, const transport::TransportContext&,
                                                       Transports&);

constexpr Make kNear[] = {
    [](const EngineParts& parts, const transport::TransportContext& context,
       Transports&) -> std::unique_ptr<transport::Transport> {
      return std::make_unique<self::SelfTransport>(context, parts.rails);
    },
    [](const EngineParts& parts, const transport::TransportContext& context,
       Transports& made) -> std::unique_ptr<transport::Transport> {
      if (parts.local_listener == nullptr) return nullptr;
      auto shm =
          std::make_unique<shm::ShmTransport>(context, *parts.local_listener, parts.region_connector.get());
      made.lane = shm.get();
      return shm;
    },
};

network::ReachMemory reach_memory_by(shm::RegionConnector* regions) {
  if (regions == nullptr) return nullptr;
  return [regions](const SocketAddress& peer) { return regions->connect(peer); };
}

/// The last resort: it takes every peer.
std::unique_ptr<transport::Transport> make_network(const EngineParts& parts,
                                                   const transport::TransportContext& context,
                                                   Transports& made) {
  if (parts.link == nullptr) return nullptr;
  const bool datagrams = parts.type == EndpointType::dgram;
  auto network = std::make_unique<network::NetworkTransport>(
      context, network::NetworkResources{*parts.link, parts.rails, parts.probe.get(), parts.roster, datagrams,
                                         reach_memory_by(parts.region_connector.get())});
  if (datagrams) made.datagrams = network.get();
  return network;
}

}  // namespace

Transports make_transports(const EngineParts& parts, const transport::TransportContext& context) {
  Transports made;
  const auto add = [&](std::unique_ptr<transport::Transport> transport) {
    if (transport == nullptr) return;
    context.reach.add(*transport);
    made.all.push_back(std::move(transport));
  };
  for (const Make make : kNear) add(make(parts, context, made));
  for (const auto& make : parts.further_transports) add(make(context));
  add(make_network(parts, context, made));
  return made;
}

}  // namespace cluster::engine
