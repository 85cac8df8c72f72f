// What endpoints would use on this node: the ranking of interfaces, the choice of a link, the options. The
// endpoints' own code decides it. The report opens links and shared memory, to test permissions instead of
// guessing them.
#pragma once

#include "base/report.h"

namespace cluster::info {

/// Records of the kinds host, interface, link, threshold and option; and refusal, if that is why the provider
/// offers nothing.
Report host_report();

}  // namespace cluster::info
