#include "address.h"

#include <arpa/inet.h>

#include <stdexcept>

namespace cluster::ip {
namespace {

constexpr std::uint8_t kIpv4Prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

}  // namespace

Address from_ipv4(const std::uint8_t* bytes) {
  Address address;
  std::memcpy(address.data(), kIpv4Prefix, sizeof kIpv4Prefix);
  std::memcpy(address.data() + sizeof kIpv4Prefix, bytes, 4);
  return address;
}

bool is_ipv4(const Address& address) {
  return std::memcmp(address.data(), kIpv4Prefix, sizeof kIpv4Prefix) == 0;
}

bool is_for_all(const Address& address) {
  if (!is_ipv4(address)) return address[0] == 0xff;
  static constexpr std::uint8_t kAllNetworks[4] = {255, 255, 255, 255};
  return address[12] >> 4 == 0xe || address == from_ipv4(kAllNetworks);
}

std::string text_of(const Address& address) {
  char text[INET6_ADDRSTRLEN];
  const bool ipv4 = is_ipv4(address);
  inet_ntop(ipv4 ? AF_INET : AF_INET6, address.data() + (ipv4 ? 12 : 0), text, sizeof text);
  return text;
}

OwnAddress OwnAddress::parse(const std::string& text) {
  OwnAddress own;
  const std::size_t slash = text.find('/');
  const std::string host = text.substr(0, slash), prefix = slash == text.npos ? "" : text.substr(slash + 1);
  std::uint8_t bytes[4];
  unsigned most = 128;
  if (inet_pton(AF_INET, host.c_str(), bytes) == 1) {
    own.address = from_ipv4(bytes);
    most = 32;
  } else if (inet_pton(AF_INET6, host.c_str(), own.address.data()) != 1) {
    throw std::runtime_error("'" + text + "' is no address with a prefix, such as 10.9.0.1/24 or fd09::1/64");
  }
  const bool number =
      !prefix.empty() && prefix.size() <= 3 && prefix.find_first_not_of("0123456789") == prefix.npos;
  own.prefix = number ? static_cast<unsigned>(std::stoi(prefix)) : 0;
  if (own.prefix == 0 || own.prefix > most)
    throw std::runtime_error("'" + text + "' needs a prefix from /1 to /" + std::to_string(most));
  if (is_for_all(own.address)) throw std::runtime_error("'" + text + "' is no address of a single node");
  return own;
}

Address OwnAddress::broadcast() const {
  if (!is_ipv4(address) || prefix > 30) return address;
  Address last = address;
  for (unsigned bit = prefix; bit < 32; ++bit)
    last[12 + bit / 8] |= static_cast<std::uint8_t>(0x80 >> bit % 8);
  return last;
}

}  // namespace cluster::ip
