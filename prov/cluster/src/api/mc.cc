#include "api/mc.h"

#include <memory>

#include "api/errno_map.h"
#include "api/sockaddr_io.h"

namespace cluster::api {
namespace {

constinit fi_ops mc_fid_ops = fid_ops({.close = close_object<Mc>});

/// Equal at all members that name the same address.
std::uint64_t key_of(const SocketAddress& address) {
  std::uint64_t key = 0xcbf29ce484222325;  // FNV-1a
  const auto mix = [&key](std::uint8_t byte) { key = (key ^ byte) * 0x100000001b3; };
  for (const std::byte byte : address.ip()) mix(std::to_integer<std::uint8_t>(byte));
  mix(static_cast<std::uint8_t>(address.port()));
  mix(static_cast<std::uint8_t>(address.port() >> 8));
  return key;
}

/// The parts that the flags name, or all that the endpoint has.
bool role_of(std::uint64_t flags, std::uint64_t caps, group::Role& role) {
  role = {(caps & FI_SEND) != 0, (caps & FI_RECV) != 0};
  if ((flags & (FI_SEND | FI_RECV)) == 0) return true;
  const group::Role asked{(flags & FI_SEND) != 0, (flags & FI_RECV) != 0};
  const bool possible = (!asked.sends || role.sends) && (!asked.receives || role.receives);
  role = asked;
  return possible;
}

}  // namespace

Mc::Mc(Endpoint& endpoint, void* context)
    : fid_mc{{FI_CLASS_MC, context, &mc_fid_ops}, FI_ADDR_NOTAVAIL}, endpoint_(endpoint) {}

Mc::~Mc() {
  if (fi_addr != FI_ADDR_NOTAVAIL) endpoint_->change_membership(nullptr, *this);
}

int Mc::join(Endpoint& endpoint, const void* address, std::uint64_t flags, fid_mc** handle, void* context) {
  if (handle == nullptr || address == nullptr) return -FI_EINVAL;
  if (flags & ~(FI_SEND | FI_RECV)) return -FI_EBADFLAGS;
  const auto* plain = static_cast<const sockaddr*>(address);
  const std::size_t size = plain->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  engine::JoinOp op{.address = SocketAddress::from(plain, size), .role = {}};
  if (!op.address.multicast() || op.address.port() == 0) return -FI_EINVAL;
  if (!role_of(flags, endpoint.options().caps(), op.role)) return -FI_EOPNOTSUPP;
  op.key = key_of(op.address);
  auto group = std::unique_ptr<Mc>(new Mc(endpoint, context));
  if (const int error = endpoint.change_membership(&op, *group)) return error;
  *handle = group.release();
  return 0;
}

}  // namespace cluster::api
