// The services that api/ needs from outside. provider/ implements them with the operating system. Unit tests
// implement them in memory.
#pragma once

#include <rdma/fabric.h>

#include <memory>

#include "base/address.h"
#include "base/environment.h"
#include "engine/engine.h"
#include "engine/sleeper.h"
#include "protocol/region_table.h"

namespace cluster::api {

/// The properties that an endpoint's engine must have.
struct EngineRequest {
  /// The endpoint's address. Port 0 means any free port. An empty address means the best interface.
  const SocketAddress& wanted;
  engine::EndpointType type;
  ConstBytes auth_key;  ///< the application's authorization key; empty if the application has set none
  std::shared_ptr<const engine::EndpointRoster> roster;  ///< the endpoints of the same domain, or null
  std::shared_ptr<carrier::RegisteredMemory> memory;     ///< the regions of the same domain
  bool collectives = false;  ///< true if the application has asked for FI_COLLECTIVE
};

class Platform {
 public:
  virtual ~Platform() = default;
  virtual Log& log() = 0;
  virtual Clock& clock() = 0;
  virtual Random& random() = 0;
  /// Yields the processor to other threads. Returns how long the call took, in ticks of clock().
  virtual std::uint64_t yield_processor() = 0;
  /// Returns how many threads of this node run or are ready to run, for each processor, rounded up. The
  /// calling thread counts. Returns at least 1.
  virtual unsigned threads_per_processor() { return 1; }
  /// Sleeps for the shortest time that the operating system offers, about 50 us. A cancelled thread
  /// (pthread_cancel) ends in this sleep.
  virtual void sleep_shortest() = 0;
  /// Returns the fence for biased locks, or null if all locks are to be plain spin locks.
  virtual ThreadFence fence() { return nullptr; }
  /// Builds an engine. On failure, logs one warning with cause and remedy, sets `error` to a positive
  /// libfabric error number, and returns null.
  virtual std::unique_ptr<engine::Engine> build_engine(const EngineRequest& request, int& error) = 0;
  /// Returns an object by which a domain offers its regions to peers on this node. Returns null if the domain
  /// must not offer its regions.
  virtual std::unique_ptr<protocol::RegionOffers> open_region_offers() { return nullptr; }
  /// Returns an object on which threads can sleep while they wait for a queue or a counter. Returns null if
  /// no descriptor is free. In this case the threads poll.
  virtual std::unique_ptr<engine::Sleeper> open_sleeper() { return nullptr; }
  /// Resolves a node and a service to an address of the given family, or of any family if the family is none.
  /// `service` may be null, and `node` may itself contain a port. Returns an empty address if the name cannot
  /// be resolved.
  virtual SocketAddress resolve(const char* /*node*/, const char* /*service*/, SocketAddress::Family) {
    return {};
  }
  /// Returns a copy of `info`, or null if there is no memory. The application can free the copy with
  /// fi_freeinfo.
  virtual fi_info* copy_info(const fi_info& info) = 0;
  virtual void free_info(fi_info* info) = 0;
};

}  // namespace cluster::api
