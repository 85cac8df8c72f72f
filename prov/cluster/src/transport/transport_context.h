// What every transport of an endpoint uses: the endpoint's identity, its peers, its messenger, and the way
// its threads sleep. The engine owns all of it. All of it outlives the transports.
#pragma once

#include <cstdint>

#include "base/address.h"
#include "base/environment.h"
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
  const SocketAddress& name;  ///< of this endpoint
  std::uint64_t epoch;        ///< orders the incarnations of this name, across restarts
  PeerTable& peers;
  protocol::Messenger& messenger;
  Waiter& waiter;
  AdmissionControl& admission;
  PeerReach& reach;
  PackingPolicy& packing;
  carrier::RegisteredMemory& memory;  ///< of the endpoint's domain
};

}  // namespace cluster::transport
