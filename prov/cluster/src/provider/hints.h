// Whether what a caller of fi_getinfo asks for can be had: a pure comparison of hints with offer.h.
// Hints and each of their parts may be missing; zero means "whatever you like", except for modes,
// where it means "I support none", which suits a provider that needs none.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <string>

namespace cluster::provider {

/// Who asks, and what depends on more than constants.
struct GetinfoCaller {
  std::uint32_t version = 0;       ///< of the interface the caller was written for
  std::uint32_t core_version = 0;  ///< how long the core's structs are
  std::size_t sends_max = 4096;    ///< sends that an endpoint takes at a time
};

struct Capabilities;  // offer.h

/// Empty if the hints can be satisfied, else what stands in the way, for the log. Names and
/// addresses are somebody else's (places.h).
std::string hint_mismatch(const fi_info& hints, const Capabilities& offer, const GetinfoCaller& asker);

}  // namespace cluster::provider
