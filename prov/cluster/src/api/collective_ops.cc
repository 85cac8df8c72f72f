// Collective operations are not supported: every call returns -FI_ENOSYS.
#include "api/fid_object.h"
#include "api/ops_tables.h"

namespace cluster::api {

constinit fi_ops_collective collective_ops_unsupported = {
    .size = sizeof(fi_ops_collective),
    .barrier = kEnosys,
    .broadcast = kEnosys,
    .alltoall = kEnosys,
    .allreduce = kEnosys,
    .allgather = kEnosys,
    .reduce_scatter = kEnosys,
    .reduce = kEnosys,
    .scatter = kEnosys,
    .gather = kEnosys,
    .msg = kEnosys,
    .barrier2 = kEnosys,
};

}  // namespace cluster::api
