// fi_ops_cm of endpoints without connections: only the name.
#include "api/endpoint.h"
#include "api/ops_tables.h"

namespace cluster::api {
namespace {

int set_name(fid* endpoint, void* address, std::size_t size) noexcept {
  return object_of<Endpoint>(endpoint).original().set_name(address, size);
}

int get_name(fid* endpoint, void* address, std::size_t* size) noexcept {
  if (size == nullptr) return -FI_EINVAL;
  return guarded([&] { return object_of<Endpoint>(endpoint).original().get_name(address, size); });
}

}  // namespace

constinit fi_ops_cm cm_ops = {
    .size = sizeof(fi_ops_cm),
    .setname = set_name,
    .getname = get_name,
    .getpeer = kEnosys,
    .connect = kEnosys,
    .listen = kEnosys,
    .accept = kEnosys,
    .reject = kEnosys,
    .shutdown = kEnosys,
    .join = kEnosys,
};

}  // namespace cluster::api
