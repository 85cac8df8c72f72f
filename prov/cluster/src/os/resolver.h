// Names to addresses, by the system's resolver. Slow: for setting up only.
#pragma once

#include <vector>

#include "base/address.h"

namespace cluster::os {

enum class Names : std::uint8_t {
  resolve,       ///< "node7" and "http" mean what the system says
  numeric_only,  ///< only what is an address and a number already
};

/// The addresses of a node and a service, in the resolver's order and without repetitions; either
/// may be null, not both. Without a node: the wildcard addresses. Nothing if there is no such name.
std::vector<SocketAddress> resolve(const char* node, const char* service, Names names = Names::resolve);

}  // namespace cluster::os
