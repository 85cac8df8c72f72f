// fi_getinfo: one entry per endpoint type, for the interface that the caller means, or none.
//
// The hints are compared with the capabilities (capabilities.h), the addresses are read and names resolved
// (addressing.h), the interface is chosen (interface_addresses.h: the one with the address asked for, else
// the one that routes to the peer, else the best), and the answer is written (capabilities.h) into memory of
// the core. Nothing of the hints is kept. The core sets the provider's name; it would take a name in the entry for that of a
// layered provider.
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
  /// `log` and `options` outlive this object.
  GetInfo(Log& log, const Options& options, std::uint32_t core_version, std::uint32_t provider_version)
      : log_(log), options_(options), core_version_(core_version), provider_version_(provider_version) {}

  /// fi_getinfo: 0 and a list in memory of the core, or a negative libfabric error.
  int get(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
          const fi_info* hints, fi_info** list);

 private:
  const InterfaceAddress* find_address(std::span<const InterfaceAddress> places, int listing_error,
                                       const fi_info* hints, const Addresses& addresses);

  Log& log_;
  const Options& options_;
  std::uint32_t core_version_;
  std::uint32_t provider_version_;
  std::atomic<bool> warned_{false};  ///< the warning that no interface is usable was written
};

}  // namespace cluster::provider
