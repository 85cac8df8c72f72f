// Socket addresses as applications pass them: bytes whose family tells the length. And back: into a buffer
// that may be too small, and into text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/address.h"

namespace cluster::api {

/// The address at `bytes` and how far it is to the next one in an array of libfabric's
/// `address_format`. An empty address if the family is neither IPv4 nor IPv6, or not that of the format.
struct ParsedSockaddr {
  SocketAddress address;
  std::size_t stride = 0;
};
ParsedSockaddr parse_sockaddr(const void* bytes, std::uint32_t address_format);

/// The address family of an addr_format, and the reverse.
SocketAddress::Family family_of_format(std::uint32_t format);
std::uint32_t format_of_family(SocketAddress::Family family);

/// "fi_sockaddr_in://10.0.0.1:9228", "fi_sockaddr_in6://[fd00::1]:9228"; "" for an empty address.
std::string to_uri(const SocketAddress& address);

/// Writes what fits of the address into a buffer of `size` bytes and sets `size` to what is needed.
/// True if all of it fitted.
bool write_sockaddr(const SocketAddress& address, void* buffer, std::size_t& size);

}  // namespace cluster::api
