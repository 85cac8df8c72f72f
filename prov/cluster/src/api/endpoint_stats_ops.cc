// The extension that include/rdma/fi_ext_cluster.h describes: an endpoint's counters, and which way
// each peer is reached.
#include <rdma/fi_ext_cluster.h>

#include <cstring>

#include "api/endpoint.h"
#include "api/ops_tables.h"

namespace cluster::api {
namespace {

ssize_t counters(fid_ep* handle, fi_cluster_counter* out, std::size_t count) noexcept {
  if (out == nullptr && count > 0) return -FI_EINVAL;
  Counters counted;
  if (const int error = static_cast<Endpoint&>(*handle).original().read_counters(counted)) return error;
  std::size_t total = 0;
  counted.each([&](const char* name, std::uint64_t value, const char* help) {
    if (total < count) out[total] = {name, help, value};
    ++total;
  });
  return static_cast<ssize_t>(total);
}

int path(fid_ep* handle, fi_addr_t peer, const char** out) noexcept {
  if (out == nullptr) return -FI_EINVAL;
  return guarded([&] { return static_cast<Endpoint&>(*handle).original().path_to(peer, *out); });
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

int Endpoint::read_counters(Counters& counted) const {
  if (engine_ == nullptr) return -FI_EOPBADSTATE;
  counted = engine_->counters();
  return 0;
}

int Endpoint::path_to(fi_addr_t peer, const char*& path) const {
  if (!enabled_) return -FI_EOPBADSTATE;
  path = engine_->path_to(peer);
  return path == nullptr ? -FI_EINVAL : 0;
}

}  // namespace cluster::api
