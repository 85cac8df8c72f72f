// The comparison of a caller's hints with the capabilities of an endpoint type; pure. Hints and each of their
// parts may be missing. Zero means "any", except for modes, where it means "the caller supports none", which
// suits a provider that needs none.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <string>

namespace cluster::provider {

/// The caller of fi_getinfo, and limits that depend on settings.
struct GetinfoCaller {
  std::uint32_t version = 0;       ///< of the interface that the caller was written for
  std::uint32_t core_version = 0;  ///< decides the length of the core's structs
  std::size_t sends_max = 4096;    ///< concurrent sends of an endpoint
  std::uint32_t provider_version = 0;
};

struct Capabilities;  // capabilities.h

/// Empty if the hints can be satisfied, else the first mismatch, for the log. Names and addresses are checked
/// elsewhere (interface_addresses.h).
std::string hint_mismatch(const fi_info& hints, const Capabilities& capabilities,
                          const GetinfoCaller& caller);

}  // namespace cluster::provider
