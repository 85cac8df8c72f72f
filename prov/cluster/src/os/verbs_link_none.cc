// Stands in for verbs_*.cc in a build without the headers of libibverbs.
#include "os/verbs_link.h"
#include "os/verbs_reader.h"

namespace cluster::os {

std::optional<VerbsPort> find_verbs_port(const std::string&, const Interface&, const SocketAddress&,
                                         std::string& reason) {
  reason = "this provider was built without the headers of libibverbs";
  return std::nullopt;
}

std::unique_ptr<link::ReadDevice> open_verbs_reader(const std::string&, const Interface&,
                                                    const SocketAddress&, unsigned, std::string&) {
  return nullptr;
}

OpenedVerbs open_verbs_link(const std::string&, const VerbsPort&, const Environment&, std::string&) {
  return {};
}

}  // namespace cluster::os
