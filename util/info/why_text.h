// Says why a program makes no progress. For each endpoint a sentence names the operation that has waited
// longest, its peer, and what is known about that peer. Buffers for many messages from any peer stay posted
// as long as the program runs, so they do not count as waiting.
#pragma once

#include <string>
#include <vector>

#include "endpoints.h"

namespace cluster::info {

/// Sorts operations by age, the oldest first; those too new to have an age come last.
std::vector<const Record*> operations_of(const Report& report);
/// "was lost 7.0 s ago (peer unreachable)".
std::string loss_text(const Record& peer);
std::string why_text(const EndpointReport& answer, const std::vector<Neighbour>& neighbours);
/// A line for each launcher whose ranks wait for no peer: they may wait for the launcher.
std::string launchers_text(const std::vector<EndpointReport>& answers);

}  // namespace cluster::info
