// The parts from which an engine is built. provider/ builds them with the operating system. Tests and the
// simulator use their own objects.
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

/// Creates a transport. The context outlives the transport.
using MakeTransport =
    std::function<std::unique_ptr<transport::Transport>(const transport::TransportContext&)>;

/// The engine's endpoint types: FI_EP_RDM, which also serves FI_EP_MSG, and FI_EP_DGRAM.
enum class EndpointType : std::uint8_t { rdm, dgram };

/// If `link` is null, the endpoint uses only shared memory. If `local_listener` is null, it uses no shared
/// memory.
struct EngineParts {
  Environment environment;
  EngineSettings settings;
  /// The name that fi_getname returns: an address that peers can reach, with a bound port.
  SocketAddress name;
  std::uint64_t epoch = 0;  ///< real time in ns; a later incarnation of the name has a larger epoch
  std::unique_ptr<link::Link> link;
  std::unique_ptr<shm::LocalListener> local_listener;
  std::shared_ptr<void> resources;        ///< destroyed after everything else in the engine
  EndpointType type = EndpointType::rdm;  ///< dgram needs a link, and uses no listener
  /// The interfaces behind `link`, by number. The first interface has the address of `name`. Empty if there
  /// is only one interface.
  std::vector<multipath::Rail> rails = {};
  /// Asks the kernel of a peer's node whether the peer's process exists. If `probe` is null, no kernel is
  /// asked.
  std::unique_ptr<link::ProcessProbe> probe = nullptr;
  /// Gives access to the registered memory of peers on this node. If `region_connector` is null, the peers'
  /// libraries perform all accesses.
  std::unique_ptr<shm::RegionConnector> region_connector = nullptr;
  /// Opens sockets that receive frames of multicast groups. If `multicast` is null, members of groups get
  /// messages only by unicast.
  std::unique_ptr<link::MulticastJoiner> multicast = nullptr;
  /// The endpoints of this endpoint's domain. A peer that knows one of these endpoints can ask that endpoint
  /// to confirm the others.
  /// Null if this endpoint is the only one.
  std::shared_ptr<const EndpointRoster> roster = nullptr;
  /// The memory that is registered in the endpoint's domain.
  std::shared_ptr<carrier::RegisteredMemory> memory = std::make_shared<carrier::RegisteredMemory>();
  /// The transports beside those that the engine itself creates, nearest first. They are farther than shared
  /// memory and nearer than the network. provider/machine.cc fills the list.
  std::vector<MakeTransport> further_transports = {};
};

}  // namespace cluster::engine
