// Translates MPI's predefined types and operations to libfabric's. Derived types and operations defined by
// the application have no counterpart in libfabric.
#pragma once

#include <rdma/fi_domain.h>

#include "abi.h"

namespace coll {

/// Returns false if the provider cannot combine elements of this type, or if MPI does not allow the operation
/// for the type. In this case MPI handles the call and reports the error.
bool translate(MPI_Datatype type, MPI_Op op, fi_datatype& fi_type, fi_op& fi_operation);

}  // namespace coll
