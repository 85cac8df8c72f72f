// The extension FI_CLUSTER_STATS (include/rdma/fi_ext_cluster.h): an endpoint's counters and the path to each
// peer.
#include <rdma/fi_ext_cluster.h>

#include <cstring>

#include "api/endpoint.h"
#include "api/ops_tables.h"

namespace cluster::api {
namespace {

ssize_t counters(fid_ep* handle, fi_cluster_counter* out, std::size_t count) noexcept {
  if (out == nullptr && count > 0) return -FI_EINVAL;
  const engine::Engine* const engine = endpoint_of(handle).opened_engine();
  if (engine == nullptr) return -FI_EOPBADSTATE;
  const Counters counters = engine->counters();
  std::size_t total = 0;
  counters.each([&](const char* name, std::uint64_t value, const char* help) {
    if (total < count) out[total] = {name, help, value};
    ++total;
  });
  return static_cast<ssize_t>(total);
}

int path(fid_ep* handle, fi_addr_t peer, const char** out) noexcept {
  if (out == nullptr) return -FI_EINVAL;
  const Endpoint& endpoint = endpoint_of(handle);
  if (endpoint.engine() == nullptr) return -FI_EOPBADSTATE;
  return guarded([&] {
    *out = endpoint.opened_engine()->carrier_name_of(peer);
    return *out == nullptr ? -FI_EINVAL : 0;
  });
}

constinit fi_cluster_ops_stats stats_ops = {
    .size = sizeof(fi_cluster_ops_stats), .counters = counters, .path = path};

}  // namespace

int open_ops(fid*, const char* name, std::uint64_t flags, void** ops, void*) noexcept {
  if (name == nullptr || ops == nullptr) return -FI_EINVAL;
  if (flags != 0 || std::strcmp(name, FI_CLUSTER_STATS) != 0) return -FI_ENOSYS;
  *ops = &stats_ops;
  return 0;
}

}  // namespace cluster::api
