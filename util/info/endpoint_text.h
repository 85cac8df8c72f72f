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
/// Replaces the report by its JSON, which needs a fraction of the memory.
void keep_as_json(EndpointReport& answer);
/// Replaces the reports of those users who say most by a note, so that a program can read the rest.
void shorten(EndpointReports& answers);
/// The members `"processes": [...]` and `"foreign_endpoints": N`.
std::string endpoints_json(const EndpointReports& answers);

}  // namespace cluster::info
