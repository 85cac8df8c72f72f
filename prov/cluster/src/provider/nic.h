// The object fi_info::nic (fi_nic(3)): what is known about the network card behind the interface of an
// answer. libfabric frees the object through its ops table. It copies the object through the table, or member
// by member.
#pragma once

#include <rdma/fabric.h>

#include "link/interface.h"
#include "link/network_card.h"

namespace cluster::provider {

/// Returns a new object. libfabric frees it with the fi_info to which it belongs.
fid_nic* make_nic(link::Interface interface, link::NetworkCard card);

}  // namespace cluster::provider
