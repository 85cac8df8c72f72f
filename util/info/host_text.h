// The host report as text: what is used and why, what is not and why not, and the options. Only the layout is
// chosen here.
#pragma once

#include <string>

#include "base/report.h"

namespace cluster::info {

std::string host_text(const Report& report);

}  // namespace cluster::info
