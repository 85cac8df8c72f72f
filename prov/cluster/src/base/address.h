// A SocketAddress is an IPv4 or IPv6 address and a port. It serves as the name of an endpoint. As text it
// looks like "10.0.0.1:9228" or "[fd00::1]:9228". A SocketAddress can also be the address of a queue pair of
// an RDMA device, although a queue pair is no socket. The address of a queue pair consists of a GID and the
// number of the queue pair. Only paths have addresses of queue pairs; endpoints never do.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>

#include "base/bytes.h"

struct sockaddr;
struct sockaddr_storage;

namespace cluster {

class SocketAddress {
 public:
  /// The enumeration is 16 bits wide so that SocketAddress has no padding and can be compared as a whole.
  enum class Family : std::uint16_t { none, v4, v6, verbs };

  static constexpr std::size_t kGidBytes = 16;

  SocketAddress() = default;
  /// `ip` is in network byte order, 4 bytes for v4 and 16 bytes for v6. `port` is in host byte order.
  static SocketAddress v4(const std::byte* ip, std::uint16_t port);
  static SocketAddress v6(const std::byte* ip, std::uint16_t port, std::uint32_t scope = 0);
  /// Returns the address of the queue pair with this number. `gid`: the GID of the device's port (kGidBytes
  /// bytes).
  static SocketAddress queue_pair(const std::byte* gid, std::uint32_t number);
  /// Converts a sockaddr_in or sockaddr_in6. Returns an empty address for anything else, or if `size` is too
  /// small.
  static SocketAddress from(const sockaddr* address, std::size_t size);
  /// Writes a sockaddr_in or sockaddr_in6 to `out` and returns its size (16 or 28). Returns 0 for an empty
  /// address.
  std::size_t to(sockaddr_storage& out) const;

  Family family() const { return family_; }
  bool empty() const { return family_ == Family::none; }
  /// Returns true for the address of a queue pair.
  bool verbs() const { return family_ == Family::verbs; }
  /// Returns true for 0.0.0.0, for :: and for an empty address.
  bool wildcard() const;
  /// Returns true for 224.0.0.0/4 and ff00::/8.
  bool multicast() const;
  /// Returns true for an IPv6 address that is valid only on one link (fe80::/10).
  bool link_local() const;
  std::uint16_t port() const { return port_; }
  SocketAddress with_port(std::uint16_t port) const;
  bool same_host(const SocketAddress& other) const {
    return std::memcmp(ip_.data(), other.ip_.data(), sizeof ip_) == 0 && family_ == other.family_ &&
           (scope_ == other.scope_ || verbs());
  }
  /// Returns true if both addresses are of the same family, and their IP addresses or GIDs have the same
  /// first `bits` bits.
  bool same_prefix(const SocketAddress& other, unsigned bits) const;
  /// Returns the IP address in network byte order, or the GID. The result has 4 or 16 bytes; it is empty for
  /// an empty address.
  ConstBytes ip() const;
  std::uint32_t scope() const { return verbs() ? 0 : scope_; }
  std::uint32_t queue_pair_number() const { return verbs() ? scope_ : 0; }
  std::string text() const;
  std::string ip_text() const;

  /// Returns the address as input for a keyed hash (base/siphash.h). Different addresses give different
  /// words. The last word is `beside`, so that the hash also covers `beside`.
  std::array<std::uint64_t, 4> words(std::uint32_t beside = 0) const {
    std::array<std::uint64_t, 4> made{};
    std::memcpy(made.data(), ip_.data(), ip_.size());
    made[2] = std::uint64_t{port_} << 48 | std::uint64_t{static_cast<std::uint16_t>(family_)} << 32 | scope_;
    made[3] = beside;
    return made;
  }

  /// Compares whole words, without branches. The comparison must be fast, because it runs for each arriving
  /// frame.
  friend bool operator==(const SocketAddress& one, const SocketAddress& other) {
    using Words = std::array<std::uint64_t, 3>;
    const auto a = std::bit_cast<Words>(one), b = std::bit_cast<Words>(other);
    return ((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2])) == 0;
  }
  std::size_t hash() const;

 private:
  std::array<std::byte, 16> ip_{};
  std::uint32_t scope_ = 0;  ///< the scope of an IPv6 address, or the number of a queue pair
  std::uint16_t port_ = 0;
  Family family_ = Family::none;
};
static_assert(std::has_unique_object_representations_v<SocketAddress>);

struct SocketAddressHash {
  std::size_t operator()(const SocketAddress& address) const { return address.hash(); }
};

}  // namespace cluster
