// Converts between SocketAddress and the sockaddr bytes that applications pass. The family of an address
// determines its length. Also writes addresses to buffers that may be too small, and converts them to text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/address.h"

namespace cluster::api {

/// The result of parse_sockaddr(). `address` is empty if the family of the bytes is neither IPv4 nor IPv6. It
/// is also empty for an IPv6 address if the format is FI_SOCKADDR_IN. `stride` is the distance to the next
/// address in an array.
struct ParsedSockaddr {
  SocketAddress address;
  std::size_t stride = 0;
};
ParsedSockaddr parse_sockaddr(const void* bytes, std::uint32_t address_format);

/// These functions convert libfabric's addr_format to an address family and back.
SocketAddress::Family family_of_format(std::uint32_t format);
std::uint32_t format_of_family(SocketAddress::Family family);

/// Returns the address in libfabric's text form, such as "fi_sockaddr_in://10.0.0.1:9228" or
/// "fi_sockaddr_in6://[fd00::1]:9228". Returns an empty text for an empty address.
std::string to_uri(const SocketAddress& address);

/// Writes as much of the address as fits into a buffer of `size` bytes, and sets `size` to the length of the
/// whole address. Returns true if the whole address fits.
bool write_sockaddr(const SocketAddress& address, void* buffer, std::size_t& size);

}  // namespace cluster::api
