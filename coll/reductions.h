// MPI's predefined types and operations as libfabric has them. Derived types and operations of the application
// have no counterpart there.
#pragma once

#include <rdma/fi_domain.h>

#include "abi.h"

namespace coll {

/// False if the provider does not combine such elements, or MPI does not permit it, which it will say itself.
bool translate(MPI_Datatype type, MPI_Op op, fi_datatype& fi_type, fi_op& fi_operation);

}  // namespace coll
