// Reads socket addresses that applications pass: bytes whose family decides the length. Writes addresses into
// a buffer that may be too small, and as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/address.h"

namespace cluster::api {

/// The address at `bytes`, and the distance to the next one in an array of libfabric's `address_format`. The
/// address is empty if its family is neither IPv4 nor IPv6, or not that of the format.
struct ParsedSockaddr {
  SocketAddress address;
  std::size_t stride = 0;
};
ParsedSockaddr parse_sockaddr(const void* bytes, std::uint32_t address_format);

/// Converts an addr_format to its address family, and back.
SocketAddress::Family family_of_format(std::uint32_t format);
std::uint32_t format_of_family(SocketAddress::Family family);

/// Returns "fi_sockaddr_in://10.0.0.1:9228" or "fi_sockaddr_in6://[fd00::1]:9228"; "" for an empty address.
std::string to_uri(const SocketAddress& address);

/// Writes as much of the address as fits into a buffer of `size` bytes, and sets `size` to the full length.
/// Returns true if all of it fits.
bool write_sockaddr(const SocketAddress& address, void* buffer, std::size_t& size);

}  // namespace cluster::api
