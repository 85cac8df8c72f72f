// Collective operations are not advertised: every call says so.
#include "api/object.h"
#include "api/tables.h"

namespace cluster::api {

constinit fi_ops_collective collective_ops_refused = {
    .size = sizeof(fi_ops_collective),
    .barrier = kNotOffered,
    .broadcast = kNotOffered,
    .alltoall = kNotOffered,
    .allreduce = kNotOffered,
    .allgather = kNotOffered,
    .reduce_scatter = kNotOffered,
    .reduce = kNotOffered,
    .scatter = kNotOffered,
    .gather = kNotOffered,
    .msg = kNotOffered,
    .barrier2 = kNotOffered,
};

}  // namespace cluster::api
