// The ops tables of an endpoint. Which one an endpoint points to depends on its capabilities and on whether
// it is enabled, so that data operations check neither.
#pragma once

#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

namespace cluster::api {

extern fi_ops_msg msg_ops;              ///< enabled, FI_MSG
extern fi_ops_msg msg_ops_disabled;     ///< not enabled yet
extern fi_ops_msg msg_ops_unsupported;  ///< no FI_MSG
extern fi_ops_tagged tagged_ops;        ///< enabled, FI_TAGGED
extern fi_ops_tagged tagged_ops_disabled;
extern fi_ops_tagged tagged_ops_unsupported;
extern fi_ops_rma rma_ops;  ///< enabled, FI_RMA
extern fi_ops_rma rma_ops_disabled;
extern fi_ops_rma rma_ops_unsupported;
extern fi_ops_atomic atomic_ops;  ///< enabled, FI_ATOMIC
extern fi_ops_atomic atomic_ops_disabled;
extern fi_ops_atomic atomic_ops_unsupported;
int query_atomic(fid_domain* domain, fi_datatype type, fi_op op, fi_atomic_attr* attributes,
                 std::uint64_t flags) noexcept;
extern fi_ops_mr mr_ops;

/// fi_open_ops of an endpoint (endpoint_stats_ops.cc).
int open_ops(fid* endpoint, const char* name, std::uint64_t flags, void** ops, void* context) noexcept;

}  // namespace cluster::api
