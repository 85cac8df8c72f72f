#include "base/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace cluster {

SocketAddress SocketAddress::v4(const std::byte* ip, std::uint16_t port) {
  SocketAddress address;
  std::copy_n(ip, 4, address.ip_.begin());
  address.port_ = port;
  address.family_ = Family::v4;
  return address;
}

SocketAddress SocketAddress::v6(const std::byte* ip, std::uint16_t port, std::uint32_t scope) {
  SocketAddress address;
  std::copy_n(ip, 16, address.ip_.begin());
  address.scope_ = scope;
  address.port_ = port;
  address.family_ = Family::v6;
  return address;
}

SocketAddress SocketAddress::queue_pair(const std::byte* gid, std::uint32_t number) {
  SocketAddress address;
  std::copy_n(gid, kGidBytes, address.ip_.begin());
  address.scope_ = number;
  // hash() does not read scope_. With the low 16 bits of the number as the port, most queue pairs of a device
  // have different hashes.
  address.port_ = static_cast<std::uint16_t>(number);
  address.family_ = Family::verbs;
  return address;
}

SocketAddress SocketAddress::from(const sockaddr* address, std::size_t size) {
  if (address == nullptr || size < sizeof(sockaddr_in)) return {};
  // The address may be unaligned, because some callers keep addresses in byte arrays.
  sa_family_t family;
  std::memcpy(&family, reinterpret_cast<const std::byte*>(address) + offsetof(sockaddr, sa_family),
              sizeof family);
  if (family == AF_INET) {
    sockaddr_in in;
    std::memcpy(&in, address, sizeof in);
    return v4(reinterpret_cast<const std::byte*>(&in.sin_addr), ntohs(in.sin_port));
  }
  if (family == AF_INET6 && size >= sizeof(sockaddr_in6)) {
    sockaddr_in6 in6;
    std::memcpy(&in6, address, sizeof in6);
    return v6(reinterpret_cast<const std::byte*>(&in6.sin6_addr), ntohs(in6.sin6_port), in6.sin6_scope_id);
  }
  return {};
}

std::size_t SocketAddress::to(sockaddr_storage& out) const {
  std::memset(&out, 0, sizeof out);
  if (family_ == Family::v4) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(port_);
    std::memcpy(&in.sin_addr, ip_.data(), 4);
    std::memcpy(&out, &in, sizeof in);
    return sizeof in;
  }
  if (family_ == Family::v6) {
    sockaddr_in6 in6{};
    in6.sin6_family = AF_INET6;
    in6.sin6_port = htons(port_);
    in6.sin6_scope_id = scope_;
    std::memcpy(&in6.sin6_addr, ip_.data(), 16);
    std::memcpy(&out, &in6, sizeof in6);
    return sizeof in6;
  }
  return 0;
}

bool SocketAddress::wildcard() const {
  return std::all_of(ip_.begin(), ip_.end(), [](std::byte b) { return b == std::byte{0}; });
}

SocketAddress SocketAddress::with_port(std::uint16_t port) const {
  SocketAddress copy = *this;
  copy.port_ = port;
  return copy;
}

bool SocketAddress::multicast() const {
  if (family_ == Family::v6) return ip_[0] == std::byte{0xff};
  return family_ == Family::v4 && (ip_[0] & std::byte{0xf0}) == std::byte{0xe0};
}

bool SocketAddress::link_local() const {
  return family_ == Family::v6 && ip_[0] == std::byte{0xfe} && (ip_[1] & std::byte{0xc0}) == std::byte{0x80};
}

ConstBytes SocketAddress::ip() const {
  return {ip_.data(), family_ == Family::none ? 0u : family_ == Family::v4 ? 4u : 16u};
}

bool SocketAddress::same_prefix(const SocketAddress& other, unsigned bits) const {
  const ConstBytes a = ip(), b = other.ip();
  const std::size_t whole = bits / 8;
  if (family_ != other.family_ ||
      !std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(whole), b.begin()))
    return false;
  const unsigned rest = bits % 8;
  return rest == 0 || std::to_integer<unsigned>(a[whole] ^ b[whole]) >> (8 - rest) == 0;
}

std::string SocketAddress::ip_text() const {
  char text[INET6_ADDRSTRLEN] = "(none)";
  if (family_ == Family::v4) inet_ntop(AF_INET, ip_.data(), text, sizeof text);
  if (family_ == Family::v6 || verbs()) inet_ntop(AF_INET6, ip_.data(), text, sizeof text);
  return text;
}

std::string SocketAddress::text() const {
  if (verbs()) return "queue pair " + std::to_string(scope_) + " at " + ip_text();
  const std::string port = ":" + std::to_string(port_);
  return family_ == Family::v6 ? "[" + ip_text() + "]" + port : ip_text() + port;
}

std::size_t SocketAddress::hash() const {
  const std::string_view bytes(reinterpret_cast<const char*>(ip_.data()), ip_.size());
  return std::hash<std::string_view>{}(bytes)*31 + port_;
}

}  // namespace cluster
