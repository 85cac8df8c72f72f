// Implements fi_getinfo. The answer has one entry for each endpoint type that satisfies the hints. All
// entries are for the same interface.
//
// GetInfo reads addresses and resolves names (addressing.h), chooses the interface (interface_addresses.h),
// and compares the hints with the capabilities (capabilities.h). Then it writes the answer (capabilities.h)
// into memory of the core. If the caller asks for a source address, GetInfo chooses the interface that has
// this address. Otherwise it chooses the interface through which the kernel reaches the destination or,
// without a destination, the best interface. It keeps no part of the hints. An entry contains no provider
// name, because the core adds this name. The core would mistake a name in the entry for the name of a layered
// provider.
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

  /// Performs a call of fi_getinfo. Returns 0 and sets `list` to entries in memory of the core, or returns a
  /// negative libfabric error.
  int get(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
          const fi_info* hints, fi_info** list);

 private:
  const InterfaceAddress* find_address(std::span<const InterfaceAddress> places, int listing_error,
                                       const fi_info* hints, const Addresses& addresses);

  Log& log_;
  const Options& options_;
  std::uint32_t core_version_;
  std::uint32_t provider_version_;
  std::atomic<bool> warned_{false};  ///< the warning "offers nothing" has been logged
};

}  // namespace cluster::provider
