// What endpoints would use on this node, determined by the code that endpoints run: the ranking of
// interfaces, the choice of a link, the options. Links and shared memory are opened, so that permissions are
// tested, not guessed.
#pragma once

#include "base/report.h"

namespace cluster::info {

/// Records of the kinds host, interface, link, threshold, option and, if the provider offers nothing
/// because of it, refusal.
Report host_report();

}  // namespace cluster::info
