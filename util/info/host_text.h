// The report of a host for people: what is taken and why, what is not and why not, and the options. Only
// words and columns are chosen here.
#pragma once

#include <string>

#include "base/report.h"

namespace cluster::info {

std::string host_text(const Report& report);

}  // namespace cluster::info
