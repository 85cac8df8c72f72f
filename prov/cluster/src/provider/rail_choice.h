// Which interfaces an endpoint uses beside the one that names it, as FI_CLUSTER_RAILS says:
//
//   auto          all that are its equals: of one kind, speed, MTU and family
//   none          no other
//   eth1,eth2     these, in this order
//   ^eth3         as auto, without this one; may be repeated
//
// Whether a rail reaches a peer is found out later, peer by peer (multipath/path_validator.h). Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "provider/interface_addresses.h"

namespace cluster::provider {

/// The places of further rails, best first. `unknown` becomes the names in `rule` that no place has.
std::vector<const InterfaceAddress*> choose_rails(std::span<const InterfaceAddress> places,
                                                  const InterfaceAddress& named, const std::string& rule,
                                                  std::vector<std::string>& unknown);

}  // namespace cluster::provider
