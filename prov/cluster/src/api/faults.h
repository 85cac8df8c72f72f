// Causes of ours as error numbers of libfabric's. Many causes have a number of their own in
// libfabric, so an application can tell a dead peer from an impolite one.
#pragma once

#include "base/fault.h"

namespace cluster::api {

/// The positive FI_E* for a fault; 0 for none.
int error_of(Fault fault);

}  // namespace cluster::api
