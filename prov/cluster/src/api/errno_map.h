// Causes of ours as error numbers of libfabric's. Many causes have a number of their own in
// libfabric, so an application can tell a dead peer from an impolite one.
#pragma once

#include "base/status.h"

namespace cluster::api {

/// The positive FI_E* for a status; 0 for none.
int fi_errno_of(Status status);

}  // namespace cluster::api
