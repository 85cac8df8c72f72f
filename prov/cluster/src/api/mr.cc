// Memory is registered for remote access and for providers that demand FI_MR_LOCAL. This one offers
// neither, so no program that heeds fi_info comes here.
#include "api/object.h"
#include "api/tables.h"

namespace cluster::api {

constinit fi_ops_mr mr_ops_refused = {
    .size = sizeof(fi_ops_mr),
    .reg = kNotOffered,
    .regv = kNotOffered,
    .regattr = kNotOffered,
};

}  // namespace cluster::api
