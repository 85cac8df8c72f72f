#include "multipath/path_log.h"

namespace cluster::multipath {

void PathLog::report(const PathState& path, PathValidator::Event event) const {
  // An EtherType path that the network does not let through is no fault of anything.
  if (event == PathValidator::Event::none || path.is_ethertype()) return;
  const std::string& rail =
      path.address.link < rails_.size() ? rails_[path.address.link].label : std::string();
  const std::string to = path.address.to.text();
  if (event == PathValidator::Event::works) {
    log_.info("rail %s to %s works", rail.c_str(), to.c_str());
  } else if (path.validator.proven()) {
    log_.warn("rail %s to %s does not answer; frames take the others until it answers again", rail.c_str(),
              to.c_str());
  } else {
    log_.warn(
        "rail %s does not reach %s and is left out: cabled to another network, or a firewall or smaller MTU "
        "between; see FI_CLUSTER_RAILS",
        rail.c_str(), to.c_str());
  }
}

}  // namespace cluster::multipath
