// The object fi_info::nic (fi_nic(3)): what is known about the network card of the interface that fi_getinfo
// offers. libfabric frees the object through the object's ops table. It copies the object through this table,
// or member by member.
#pragma once

#include <rdma/fabric.h>

#include "link/interface.h"
#include "link/network_card.h"

namespace cluster::provider {

/// Returns a new object. libfabric frees it with the fi_info to which it belongs.
fid_nic* make_nic(link::Interface interface, link::NetworkCard card);

}  // namespace cluster::provider
