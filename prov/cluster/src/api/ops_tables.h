// The ops tables of an endpoint. Which one an endpoint points to depends on its capabilities and on whether
// it is enabled, so that data operations check neither.
#pragma once

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "api/fid_object.h"

namespace cluster::api {

// Of enabled endpoints with the capability.
extern fi_ops_msg msg_ops;
extern fi_ops_tagged tagged_ops;
extern fi_ops_rma rma_ops;
extern fi_ops_atomic atomic_ops;
extern fi_ops_collective collective_ops;
/// Of an endpoint that is not enabled yet.
template <typename Table>
inline constinit Table disabled_ops = stub_ops<Table>(kEopbadstate);
extern fi_ops_atomic atomic_ops_disabled;
/// Of an endpoint without the capability.
template <typename Table>
inline constinit Table unsupported_ops = stub_ops<Table>(kEnosys);

int query_atomic(fid_domain* domain, fi_datatype type, fi_op op, fi_atomic_attr* attributes,
                 std::uint64_t flags) noexcept;
int query_collective(fid_domain* domain, fi_collective_op coll, fi_collective_attr* attributes,
                     std::uint64_t flags) noexcept;
extern fi_ops_mr mr_ops;

/// fi_open_ops of an endpoint (endpoint_stats_ops.cc).
int open_ops(fid* endpoint, const char* name, std::uint64_t flags, void** ops, void* context) noexcept;

}  // namespace cluster::api
