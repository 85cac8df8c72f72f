#include "engine/transports.h"

#include <utility>

#include "self/self_transport.h"

namespace cluster::engine {
namespace {

network::ReachMemory reach_memory_by(shm::RegionConnector* regions) {
  if (regions == nullptr) return nullptr;
  return [regions](const SocketAddress& peer) { return regions->connect(peer); };
}

}  // namespace

Transports make_transports(EngineParts& parts, const transport::TransportContext& context) {
  const bool datagrams = parts.type == EndpointType::dgram;
  Transports made;
  const auto add = [&](std::unique_ptr<transport::Transport> transport) {
    context.reach.add(*transport);
    made.all.push_back(std::move(transport));
  };
  add(std::make_unique<self::SelfTransport>(context, parts.rails));
  if (parts.local_listener != nullptr) {
    auto shm =
        std::make_unique<shm::ShmTransport>(context, *parts.local_listener, parts.region_connector.get());
    made.lane = shm.get();
    add(std::move(shm));
  } else {
    context.reach.note_lacking("no shared memory: this endpoint does not use it");
  }
  if (!datagrams) {
    for (const MakeTransport& make : parts.further_transports) add(make(context));
  }
  // The last resort: the network accepts every peer.
  if (parts.link != nullptr) {
    auto network = std::make_unique<network::NetworkTransport>(
        context, network::NetworkResources{*parts.link, parts.rails, parts.probe.get(), parts.roster,
                                           datagrams, reach_memory_by(parts.region_connector.get())});
    (datagrams ? made.datagrams : made.network) = network.get();
    add(std::move(network));
  } else {
    context.reach.note_lacking("no network link, see FI_CLUSTER_LINK and FI_CLUSTER_IFACE");
  }
  return made;
}

}  // namespace cluster::engine
