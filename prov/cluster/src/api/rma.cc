// Remote reads and writes are not advertised: every call says so.
#include "api/object.h"
#include "api/tables.h"

namespace cluster::api {

constinit fi_ops_rma rma_ops_refused = {
    .size = sizeof(fi_ops_rma),
    .read = kNotOffered,
    .readv = kNotOffered,
    .readmsg = kNotOffered,
    .write = kNotOffered,
    .writev = kNotOffered,
    .writemsg = kNotOffered,
    .inject = kNotOffered,
    .writedata = kNotOffered,
    .injectdata = kNotOffered,
};

}  // namespace cluster::api
