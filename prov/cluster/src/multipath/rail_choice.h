// Which interfaces an endpoint uses beside the one that carries its address, as FI_CLUSTER_RAILS says:
//
//   auto          all that equal it: same kind, speed, MTU and address family
//   none          no other
//   eth1,eth2     these, in this order
//   ^eth3         as auto, without this one; may be repeated
//
// A rail is one local interface. Whether a rail reaches a peer is found out later, for each peer
// (multipath/path_validator.h). Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "link/interface.h"

namespace cluster::multipath {

/// The further rails, best first, out of `addresses`, which are sorted best first. `primary` is the one that
/// carries the endpoint's address. `unknown` receives the names in `rule` that no usable address has.
std::vector<const link::InterfaceAddress*> choose_rails(std::span<const link::InterfaceAddress> addresses,
                                                        const link::InterfaceAddress& primary,
                                                        const std::string& rule,
                                                        std::vector<std::string>& unknown);

}  // namespace cluster::multipath
