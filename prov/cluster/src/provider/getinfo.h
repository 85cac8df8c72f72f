// fi_getinfo: returns one entry for each endpoint type, on the interface that the caller asks for, or
// nothing.
//
// It compares the hints with the capabilities (capabilities.h), reads addresses and resolves names
// (addressing.h), and chooses the interface (interface_addresses.h). Then it writes the answer
// (capabilities.h) into memory of the core. The chosen interface has the address asked for, else it routes to
// the peer, else it is the best one. Nothing of the hints is kept. The core sets the provider's name: it
// would read a name in the entry as that of a layered provider.
#pragma once

#include <rdma/fabric.h>

#include <atomic>
#include <cstdint>
#include <span>

#include "base/log.h"
#include "provider/addressing.h"
#include "provider/interface_addresses.h"
#include "provider/options.h"

namespace cluster::provider {

class GetInfo {
 public:
  /// `log` and `options` must outlive this object.
  GetInfo(Log& log, const Options& options, std::uint32_t core_version, std::uint32_t provider_version)
      : log_(log), options_(options), core_version_(core_version), provider_version_(provider_version) {}

  /// Serves fi_getinfo: returns 0 and a list in memory of the core, or a negative libfabric error.
  int get(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
          const fi_info* hints, fi_info** list);

 private:
  const InterfaceAddress* find_address(std::span<const InterfaceAddress> places, int listing_error,
                                       const fi_info* hints, const Addresses& addresses);

  Log& log_;
  const Options& options_;
  std::uint32_t core_version_;
  std::uint32_t provider_version_;
  std::atomic<bool> warned_{false};  ///< the warning "nothing is offered" was logged
};

}  // namespace cluster::provider
