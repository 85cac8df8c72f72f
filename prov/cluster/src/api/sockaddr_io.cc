#include "api/sockaddr_io.h"

#include <netinet/in.h>
#include <rdma/fabric.h>

#include <algorithm>
#include <cstring>

namespace cluster::api {

SocketAddress::Family family_of_format(std::uint32_t format) {
  using Family = SocketAddress::Family;
  if (format == FI_SOCKADDR_IN) return Family::v4;
  return format == FI_SOCKADDR_IN6 ? Family::v6 : Family::none;
}

std::uint32_t format_of_family(SocketAddress::Family family) {
  using Family = SocketAddress::Family;
  if (family == Family::none) return FI_FORMAT_UNSPEC;
  return family == Family::v4 ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
}

ParsedSockaddr parse_sockaddr(const void* bytes, std::uint32_t address_format) {
  const auto* raw = static_cast<const sockaddr*>(bytes);
  sa_family_t family;
  std::memcpy(&family, static_cast<const std::byte*>(bytes) + offsetof(sockaddr, sa_family), sizeof family);
  const bool wide =
      address_format == FI_SOCKADDR_IN6 || (address_format != FI_SOCKADDR_IN && family == AF_INET6);
  ParsedSockaddr result;
  result.stride = wide ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  result.address = SocketAddress::from(raw, result.stride);
  return result;
}

std::string to_uri(const SocketAddress& address) {
  switch (address.family()) {
    case SocketAddress::Family::v4: return "fi_sockaddr_in://" + address.text();
    case SocketAddress::Family::v6: return "fi_sockaddr_in6://" + address.text();
    case SocketAddress::Family::none:
    case SocketAddress::Family::verbs: break;
  }
  return "";
}

bool write_sockaddr(const SocketAddress& address, void* buffer, std::size_t& size) {
  sockaddr_storage storage;
  const std::size_t needed = address.to(storage);
  const std::size_t part = buffer != nullptr ? std::min(size, needed) : 0;
  if (part > 0) std::memcpy(buffer, &storage, part);
  size = needed;
  return part == needed;
}

}  // namespace cluster::api
