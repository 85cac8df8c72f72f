// IP addresses of packets. Both families have one form, IPv4 as ::ffff:a.b.c.d, so that one table finds both.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>

namespace cluster::ip {

using Address = std::array<std::uint8_t, 16>;

struct HashAddress {
  std::size_t operator()(const Address& address) const {
    std::uint64_t halves[2];
    std::memcpy(halves, address.data(), sizeof halves);
    return (halves[0] ^ halves[1] * 0x9e3779b97f4a7c15) * 0x9e3779b97f4a7c15 >> 16;
  }
};

/// From the bytes of an IPv4 address, in the order of the network.
Address from_ipv4(const std::uint8_t* bytes);
bool is_ipv4(const Address& address);
/// A multicast address, or the broadcast address of all networks.
bool is_for_all(const Address& address);
std::string text_of(const Address& address);

/// An address of this node with the length of its network's prefix.
struct OwnAddress {
  Address address = {};
  unsigned prefix = 0;

  /// Reads 10.9.0.1/24 or fd09::1/64. Throws std::runtime_error.
  static OwnAddress parse(const std::string& text);
  /// The broadcast address of the IPv4 network; the address itself with IPv6 or a prefix above 30.
  Address broadcast() const;
};

}  // namespace cluster::ip
