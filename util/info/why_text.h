// Why a program does not go on: for each endpoint a sentence that names what it has waited for longest, from which
// peer, and what is known of that peer. Buffers for many messages that any peer may send stand as long as the
// program runs: they wait for nothing.
#pragma once

#include <string>
#include <vector>

#include "endpoints.h"

namespace cluster::info {

/// Operations that have waited longest come first; those that are too new to have an age come last.
std::vector<const Record*> operations_of(const Report& report);
/// "was lost 7.0 s ago (peer unreachable)".
std::string loss_text(const Record& peer);
std::string why_text(const EndpointReport& answer, const std::vector<Neighbour>& neighbours);
/// A line for each launcher none of whose ranks waits for a peer: they may wait for the launcher.
std::string launchers_text(const std::vector<EndpointReport>& answers);

}  // namespace cluster::info
