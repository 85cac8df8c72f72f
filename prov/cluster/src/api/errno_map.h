// Status values and exceptions as error numbers of libfabric. Each cause has a number of its own where
// libfabric has one, so that an application can tell a dead peer from one that refuses it.
#pragma once

#include "base/status.h"

namespace cluster::api {

/// The positive FI_E*; 0 for Status::ok.
int fi_errno_of(Status status);
/// The positive FI_E* for the exception that is being handled.
int fi_errno_of_exception() noexcept;

}  // namespace cluster::api
