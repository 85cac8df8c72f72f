// The host report as text: what endpoints use and why, what they do not use and why not, and the options.
// This file decides only the layout.
#pragma once

#include <string>

#include "base/report.h"

namespace cluster::info {

std::string host_text(const Report& report);

}  // namespace cluster::info
