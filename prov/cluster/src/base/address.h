// A socket address (IPv4 or IPv6 and a port), the name of an endpoint: compact and comparable.
// Text forms: "10.0.0.1:9228", "[fd00::1]:9228".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>

#include "base/bytes.h"

struct sockaddr;
struct sockaddr_storage;

namespace cluster {

class SocketAddress {
 public:
  enum class Family : std::uint8_t { none, v4, v6 };

  SocketAddress() = default;
  /// `ip` in network byte order: 4 bytes for v4, 16 for v6; `port` in host order.
  static SocketAddress v4(const std::byte* ip, std::uint16_t port);
  static SocketAddress v6(const std::byte* ip, std::uint16_t port, std::uint32_t scope = 0);
  /// From sockaddr_in or sockaddr_in6; an empty address for anything else (or if too short).
  static SocketAddress from(const sockaddr* address, std::size_t size);
  /// Writes sockaddr_in or sockaddr_in6 and returns its size (16 or 28).
  std::size_t to(sockaddr_storage& out) const;

  Family family() const { return family_; }
  bool empty() const { return family_ == Family::none; }
  /// True for 0.0.0.0 and ::.
  bool wildcard() const;
  /// 224.0.0.0/4 and ff00::/8.
  bool multicast() const;
  /// An IPv6 address that is valid on one link only (fe80::/10).
  bool link_local() const;
  std::uint16_t port() const { return port_; }
  SocketAddress with_port(std::uint16_t port) const;
  bool same_host(const SocketAddress& other) const {
    return std::memcmp(ip_.data(), other.ip_.data(), sizeof ip_) == 0 && family_ == other.family_ &&
           scope_ == other.scope_;
  }
  /// The address in network byte order: 4 or 16 bytes.
  ConstBytes ip() const;
  std::uint32_t scope() const { return scope_; }
  std::string text() const;
  std::string ip_text() const;

  /// Called for each frame that arrives: compares whole words.
  friend bool operator==(const SocketAddress& one, const SocketAddress& other) {
    return std::memcmp(one.ip_.data(), other.ip_.data(), sizeof one.ip_) == 0 && one.scope_ == other.scope_ &&
           one.port_ == other.port_ && one.family_ == other.family_;
  }
  std::size_t hash() const;

 private:
  std::array<std::byte, 16> ip_{};
  std::uint32_t scope_ = 0;
  std::uint16_t port_ = 0;
  Family family_ = Family::none;
};

struct SocketAddressHash {
  std::size_t operator()(const SocketAddress& address) const { return address.hash(); }
};

}  // namespace cluster
