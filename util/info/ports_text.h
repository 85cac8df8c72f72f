// Which ports must be open between the nodes of a job, as rules for firewalls.
#pragma once

#include <string>

#include "provider/options.h"

namespace cluster::info {

/// Returns the range of FI_CLUSTER_PORTS in the environment or, if it is not set, the range from which the
/// kernel chooses. On failure, the range is empty and `error` says why.
provider::PortRange ports_in_use(bool& from_user, std::string& error);

/// Returns rules for nftables, firewalld and a security group, with comments.
std::string ports_text(const provider::PortRange& range, bool from_user);

}  // namespace cluster::info
