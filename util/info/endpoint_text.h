// What running endpoints said, for people and for programs: grouped by process, a line for each peer, and the
// reasons for their paths below.
#pragma once

#include <string>

#include "endpoints.h"

namespace cluster::info {

std::string endpoints_text(const EndpointReports& answers);
/// The members `"processes": [...]` and `"foreign_endpoints": N`.
std::string endpoints_json(const EndpointReports& answers);

}  // namespace cluster::info
