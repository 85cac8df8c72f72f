// The name of an endpoint: the socket address under which others find it. Of the table it is in
// only this concerns endpoints without connections.
#include "api/endpoint.h"
#include "api/ops_tables.h"
#include "api/sockaddr_io.h"

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

int Endpoint::get_name(void* address, std::size_t* size) {
  if (const int error = ensure_engine()) return error;
  return write_sockaddr(engine_->name(), address, *size) ? 0 : -FI_ETOOSMALL;
}

int Endpoint::set_name(const void* address, std::size_t size) {
  if (engine_ != nullptr) return -FI_EOPBADSTATE;
  const SocketAddress name = SocketAddress::from(static_cast<const sockaddr*>(address), size);
  if (name.empty()) return -FI_EINVAL;
  requested_name_ = name;
  return 0;
}

}  // namespace cluster::api
