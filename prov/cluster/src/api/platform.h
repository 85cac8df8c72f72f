// What api/ needs from its surroundings. provider/ implements it over the operating system; unit tests
// implement it in memory.
#pragma once

#include <memory>

#include "base/address.h"
#include "base/environment.h"
#include "engine/engine.h"
#include "engine/sleeper.h"
#include "protocol/region_table.h"

namespace cluster::api {

/// The properties that an endpoint asks of its engine.
struct EngineRequest {
  const SocketAddress& wanted;  ///< port 0: any port; empty: the best interface
  engine::EndpointType type;
  ConstBytes auth_key;  ///< the application's authorization key; empty if it has set none
  std::shared_ptr<const engine::EndpointRoster> roster;  ///< the endpoints of the same domain
  std::shared_ptr<carrier::RegisteredMemory> memory;     ///< of the same domain
  bool collectives = false;                              ///< true if FI_COLLECTIVE was asked for
};

class Platform {
 public:
  virtual ~Platform() = default;
  virtual Log& log() = 0;
  virtual Clock& clock() = 0;
  virtual Random& random() = 0;
  /// Lets other threads run. Returns for how many ticks of clock() they had the processor, including the cost
  /// of the system call.
  virtual std::uint64_t yield_processor() = 0;
  /// Sleeps for the shortest time that the system offers, about 50 us. A cancelled thread ends in this sleep.
  virtual void sleep_shortest() = 0;
  /// Returns the fence of biased locks; null if locks are plain.
  virtual ThreadFence fence() { return nullptr; }
  /// Returns an engine. On failure it logs one warning with cause and remedy, sets `error` to a positive
  /// libfabric error number, and returns null.
  virtual std::unique_ptr<engine::Engine> build_engine(const EngineRequest& request, int& error) = 0;
  /// Returns how a domain offers its regions to peers on this node; null if it does not offer them.
  virtual std::unique_ptr<protocol::RegionOffers> open_region_offers() { return nullptr; }
  /// Returns what a queue sleeps on; null if no descriptor is available. Then waiting threads poll.
  virtual std::unique_ptr<engine::Sleeper> open_sleeper() { return nullptr; }
  /// Returns the address of node and service in this family (none: any family). A null `service` means that
  /// there is none or that `node` contains one. Returns an empty address if the name cannot be resolved.
  virtual SocketAddress resolve(const char* /*node*/, const char* /*service*/, SocketAddress::Family) {
    return {};
  }
};

}  // namespace cluster::api
