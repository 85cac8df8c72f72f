// Causes of ours as error numbers of libfabric's.
#pragma once

#include "base/fault.h"

namespace cluster::api {

/// The positive FI_E* for a fault; 0 for none.
int error_of(Fault fault);

}  // namespace cluster::api
