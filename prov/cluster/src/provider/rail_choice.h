// Which interfaces an endpoint uses beside the one that names it, as FI_CLUSTER_RAILS says:
//
//   auto          all that are its equals: of one kind, speed, MTU and family
//   none          no other
//   eth1,eth2     these, in this order
//   ^eth3         as auto, without this one; may be repeated
//
// Whether a rail reaches a peer is found out later, peer by peer (rails/health.h). Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "provider/places.h"

namespace cluster::provider {

/// The places of further rails, best first. `unknown` becomes the names in `rule` that no place has.
std::vector<const Place*> choose_rails(std::span<const Place> places, const Place& named,
                                       const std::string& rule, std::vector<std::string>& unknown);

}  // namespace cluster::provider
