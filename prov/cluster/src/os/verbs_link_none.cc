// Stands in for verbs_*.cc in a build without the headers of libibverbs.
#include "os/verbs_link.h"

namespace cluster::os {

std::optional<VerbsPort> find_verbs_port(const std::string&, const Interface&, const SocketAddress&,
                                         std::string& reason) {
  reason = "this provider was built without the headers of libibverbs";
  return std::nullopt;
}

OpenedVerbs open_verbs_link(const std::string&, const VerbsPort&, const Environment&, std::string&) {
  return {};
}

}  // namespace cluster::os
