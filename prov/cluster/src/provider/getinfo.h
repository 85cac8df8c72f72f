// fi_getinfo: an entry per kind of endpoint, for the place that the caller means, or nothing.
//
// The way: hints are compared with what is offered (hints.h), addresses are read and names resolved
// (addressing.h), the interface is chosen (places.h: the address asked for, else the one that routes
// to the peer, else the best), the answer is written (offer.h) into memory of the core that asks.
// Nothing of the hints is kept. The provider's name is left to the core, which would take one of
// ours for a layer below.
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
  /// Both outlive the informer.
  GetInfo(Log& log, const Options& options, std::uint32_t core_version)
      : log_(log), options_(options), core_version_(core_version) {}

  /// 0 and a list of the core's making, or a negative libfabric error; arguments as fi_getinfo's.
  int get(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
          const fi_info* hints, fi_info** list);

 private:
  const InterfaceAddress* choose_address(std::span<const InterfaceAddress> places, const fi_info* hints,
                                         const Addresses& addresses);

  Log& log_;
  const Options& options_;
  std::uint32_t core_version_;
  std::atomic<bool> warned_{false};  ///< that no interface can be used; said once
};

}  // namespace cluster::provider
