// What api/ needs from its surroundings: provider/ implements it over the operating system, unit tests in
// memory.
#pragma once

#include <memory>

#include "base/address.h"
#include "base/environment.h"
#include "engine/engine.h"
#include "engine/sleeper.h"
#include "protocol/region_table.h"

namespace cluster::api {

/// What an endpoint asks of the engine behind it.
struct EngineRequest {
  const SocketAddress& wanted;  ///< port 0: any; empty: the best interface
  engine::EndpointType type;
  ConstBytes auth_key;  ///< the application's authorization key; empty: it has set none
  std::shared_ptr<const engine::EndpointRoster> roster;  ///< of its domain's endpoints
  bool collectives = false;                              ///< FI_COLLECTIVE was asked for
};

class Platform {
 public:
  virtual ~Platform() = default;
  virtual Log& log() = 0;
  virtual Clock& clock() = 0;
  virtual Random& random() = 0;
  /// Lets other threads run. Returns for how many ticks of clock() they had the processor, including the cost of the system
  /// call.
  virtual std::uint64_t yield_processor() = 0;
  /// Sleeps for the shortest time that the system offers, some 50 us. A thread that is cancelled ends there.
  virtual void sleep_shortest() = 0;
  /// The fence of biased locks; null: plain locks.
  virtual ThreadFence fence() { return nullptr; }
  /// On failure it writes one warning that names cause and remedy, sets `error` to a positive libfabric error number, and returns
  /// null.
  virtual std::unique_ptr<engine::Engine> build_engine(const EngineRequest& request, int& error) = 0;
  /// How the regions of a domain are offered to peers on this node; null: they are not.
  virtual std::unique_ptr<protocol::RegionOffers> open_region_offers() { return nullptr; }
  /// What a queue sleeps on; null if no descriptor is available: then waiting polls.
  virtual std::unique_ptr<engine::Sleeper> open_sleeper() { return nullptr; }
  /// The address of node and service (null: none, or part of `node`) in this family (none: any); empty if the
  /// name cannot be resolved.
  virtual SocketAddress resolve(const char* /*node*/, const char* /*service*/, SocketAddress::Family) {
    return {};
  }
};

}  // namespace cluster::api
