// The objects of an endpoint that all its transports share. The engine owns them, and they outlive the
// transports.
#pragma once

#include <cstdint>

#include "base/address.h"
#include "base/environment.h"
#include "base/outage.h"
#include "carrier/registered_memory.h"
#include "protocol/messenger.h"
#include "transport/admission_control.h"
#include "transport/engine_settings.h"
#include "transport/packing_policy.h"
#include "transport/peer_reach.h"
#include "transport/peer_table.h"
#include "transport/waiter.h"

namespace cluster::transport {

struct TransportContext {
  const Environment& environment;
  const EngineSettings& settings;
  const SocketAddress& name;  ///< the name of this endpoint
  /// A later incarnation of this name has a larger epoch, even after a restart of the node.
  std::uint64_t epoch;
  PeerTable& peers;
  protocol::Messenger& messenger;
  Waiter& waiter;
  AdmissionControl& admission;
  PeerReach& reach;
  PackingPolicy& packing;
  carrier::RegisteredMemory& memory;  ///< the registered memory of the endpoint's domain
  Outage& outage;                     ///< the network transport says when there is an outage
};

}  // namespace cluster::transport
