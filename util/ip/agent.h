// What the agent of this node (clusterd) knows of the nodes.
#pragma once

#include <vector>

#include "nodes.h"

namespace cluster::ip {

/// The nodes that the agent has seen so far. Throws std::runtime_error with the reason if it does not say.
std::vector<Node> nodes_of_agent();

}  // namespace cluster::ip
