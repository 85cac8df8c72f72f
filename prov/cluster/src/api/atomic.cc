// Atomic operations are not advertised: every call says so.
#include "api/object.h"
#include "api/tables.h"

namespace cluster::api {

constinit fi_ops_atomic atomic_ops_refused = {
    .size = sizeof(fi_ops_atomic),
    .write = kNotOffered,
    .writev = kNotOffered,
    .writemsg = kNotOffered,
    .inject = kNotOffered,
    .readwrite = kNotOffered,
    .readwritev = kNotOffered,
    .readwritemsg = kNotOffered,
    .compwrite = kNotOffered,
    .compwritev = kNotOffered,
    .compwritemsg = kNotOffered,
    .writevalid = kNotOffered,
    .readwritevalid = kNotOffered,
    .compwritevalid = kNotOffered,
};

}  // namespace cluster::api
