// The reports of running endpoints as text and as JSON: grouped by process, a line for each peer, and the
// reasons for the paths below; on request the operations in progress.
#pragma once

#include <string>

#include "endpoints.h"

namespace cluster::info {

std::string endpoints_text(const EndpointReports& answers, bool operations);
/// A sentence for each endpoint, on what it waits for and from which peer; then the launchers that ranks may
/// wait for.
std::string reasons_text(const EndpointReports& answers);
/// The members `"processes": [...]` and `"foreign_endpoints": N`.
std::string endpoints_json(const EndpointReports& answers);

}  // namespace cluster::info
