// The parts of an engine. provider/ builds them from the operating system; tests and the simulator use their
// own objects.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/address.h"
#include "base/environment.h"
#include "carrier/registered_memory.h"
#include "link/link.h"
#include "link/multicast.h"
#include "link/process_probe.h"
#include "multipath/address_pairing.h"
#include "network/endpoint_roster.h"
#include "shm/local_listener.h"
#include "shm/local_memory.h"
#include "transport/engine_settings.h"
#include "transport/transport.h"
#include "transport/transport_context.h"

namespace cluster::engine {

using network::EndpointRoster;
using transport::EngineSettings;
using transport::Peer;
using transport::PeerTable;
using transport::PollScope;

/// Makes a transport. The context outlives it.
using MakeTransport =
    std::function<std::unique_ptr<transport::Transport>(const transport::TransportContext&)>;

/// FI_EP_RDM or FI_EP_DGRAM.
enum class EndpointType : std::uint8_t { rdm, dgram };

/// `link` may be null: only shared memory. `local_listener` may be null: no shared memory.
struct EngineParts {
  Environment environment;
  EngineSettings settings;
  SocketAddress name;       ///< as fi_getname returns it: routable, port bound
  std::uint64_t epoch = 0;  ///< real time in ns; orders the incarnations of one name, across restarts
  std::unique_ptr<link::Link> link;
  std::unique_ptr<shm::LocalListener> local_listener;
  std::shared_ptr<void> resources;        ///< destroyed last, after everything else of the engine
  EndpointType type = EndpointType::rdm;  ///< dgram: there is a link, and no listener is used
  /// The interfaces behind `link` by number. The first has the address of the name. Empty: one interface.
  std::vector<multipath::Rail> rails = {};
  /// Asks the kernels of peers whether their processes exist. Null: only the peer's silence shows that it is
  /// gone.
  std::unique_ptr<link::ProcessProbe> probe = nullptr;
  /// Accesses registered memory of peers on this node. Null: their libraries serve all accesses.
  std::unique_ptr<shm::RegionConnector> region_connector = nullptr;
  /// Receives what is sent to multicast groups. Null: members of groups get messages by unicast only.
  std::unique_ptr<link::MulticastJoiner> multicast = nullptr;
  /// The endpoints of this process, for peers that know one of them; null: this one is alone.
  std::shared_ptr<const EndpointRoster> roster = nullptr;
  /// The memory that is registered in the endpoint's domain.
  std::shared_ptr<carrier::RegisteredMemory> memory = std::make_shared<carrier::RegisteredMemory>();
  /// The transports beside those that the engine makes itself, nearest first. They are farther than shared
  /// memory and nearer than the network. provider/machine.cc fills the list.
  std::vector<MakeTransport> further_transports = {};
};

}  // namespace cluster::engine
