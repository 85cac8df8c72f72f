// The nodes, by the addresses of their Ethernet interfaces. The list is the same on all nodes: this node is in it.
#pragma once

#include <string>
#include <vector>

namespace cluster::ip {

struct Node {
  std::string name;
  std::string address;  ///< a numeric one
};

/// Finds the addresses of names. Throws std::runtime_error if one has none.
std::vector<Node> resolve(const std::vector<std::string>& names);
/// The entry of this node: the first one whose address an interface here has. nullptr if there is none.
const Node* own_node(const std::vector<Node>& nodes);

}  // namespace cluster::ip
