// What this node offers to endpoints, found out by the objects that endpoints are made of: the ranking of
// interfaces, the choice of a link, the options. What is permitted is tried, not guessed.
#pragma once

#include "base/report.h"

namespace cluster::info {

/// Records of the kinds host, interface, link, threshold, option and, if the provider offers nothing
/// because of it, refusal.
Report host_report();

}  // namespace cluster::info
