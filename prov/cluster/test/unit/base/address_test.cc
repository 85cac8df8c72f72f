// Socket addresses: both families through the system's structs and back, what is refused, text.
#include "base/address.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <array>
#include <unordered_set>

namespace cluster {
namespace {

SocketAddress parse(const char* ip, std::uint16_t port, std::uint32_t scope = 0) {
  std::array<std::byte, 16> bytes{};
  if (inet_pton(AF_INET, ip, bytes.data()) == 1) return SocketAddress::v4(bytes.data(), port);
  EXPECT_EQ(inet_pton(AF_INET6, ip, bytes.data()), 1) << ip;
  return SocketAddress::v6(bytes.data(), port, scope);
}

SocketAddress round_trip(const SocketAddress& address, std::size_t expected_size) {
  sockaddr_storage storage;
  const std::size_t size = address.to(storage);
  EXPECT_EQ(size, expected_size);
  return SocketAddress::from(reinterpret_cast<const sockaddr*>(&storage), size);
}

TEST(SocketAddress, IsEmptyUntilSet) {
  const SocketAddress none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.family(), SocketAddress::Family::none);
  EXPECT_TRUE(none.ip().empty());
  EXPECT_EQ(none, SocketAddress{});
  sockaddr_storage storage;
  EXPECT_EQ(none.to(storage), 0u);
}

/// The sanitizers see what the processor forgives.
TEST(SocketAddress, IsReadFromOddPlaces) {
  for (const char* ip : {"10.1.2.3", "fd00::9"}) {
    const SocketAddress address = parse(ip, 9228);
    sockaddr_storage storage;
    const std::size_t size = address.to(storage);
    std::array<std::byte, sizeof storage + 1> bytes{};
    std::memcpy(bytes.data() + 1, &storage, size);
    EXPECT_EQ(SocketAddress::from(reinterpret_cast<const sockaddr*>(bytes.data() + 1), size), address);
  }
}

TEST(SocketAddress, RoundTripsThroughSockaddrIn) {
  const SocketAddress address = parse("10.1.2.3", 9228);
  EXPECT_EQ(address.family(), SocketAddress::Family::v4);
  EXPECT_EQ(address.port(), 9228);
  EXPECT_EQ(address.ip().size(), 4u);
  EXPECT_EQ(round_trip(address, sizeof(sockaddr_in)), address);
  sockaddr_storage storage;
  address.to(storage);
  sockaddr_in in;
  std::memcpy(&in, &storage, sizeof in);
  EXPECT_EQ(in.sin_family, AF_INET);
  EXPECT_EQ(in.sin_port, htons(9228));
  EXPECT_EQ(in.sin_addr.s_addr, inet_addr("10.1.2.3"));
}

TEST(SocketAddress, RoundTripsThroughSockaddrIn6) {
  const SocketAddress address = parse("fe80::1", 65535, 3);
  EXPECT_EQ(address.family(), SocketAddress::Family::v6);
  EXPECT_EQ(address.scope(), 3u);
  EXPECT_EQ(address.ip().size(), 16u);
  EXPECT_EQ(round_trip(address, sizeof(sockaddr_in6)), address);
}

TEST(SocketAddress, RefusesWhatIsNoAddress) {
  sockaddr_storage storage;
  const SocketAddress v4 = parse("10.1.2.3", 1);
  const SocketAddress v6 = parse("fd00::1", 1);
  EXPECT_TRUE(SocketAddress::from(nullptr, sizeof storage).empty());
  std::size_t size = v4.to(storage);
  EXPECT_TRUE(SocketAddress::from(reinterpret_cast<sockaddr*>(&storage), size - 1).empty());
  EXPECT_TRUE(SocketAddress::from(reinterpret_cast<sockaddr*>(&storage), 0).empty());
  size = v6.to(storage);
  EXPECT_TRUE(SocketAddress::from(reinterpret_cast<sockaddr*>(&storage), size - 1).empty());
  std::memset(&storage, 0, sizeof storage);
  EXPECT_TRUE(SocketAddress::from(reinterpret_cast<sockaddr*>(&storage), sizeof storage).empty());
}

TEST(SocketAddress, KnowsWildcards) {
  EXPECT_TRUE(parse("0.0.0.0", 5).wildcard());
  EXPECT_TRUE(parse("::", 5).wildcard());
  EXPECT_FALSE(parse("0.0.0.1", 0).wildcard());
  EXPECT_FALSE(parse("::1", 0).wildcard());
}

/// fe80::/10 (RFC 4291 2.4); IPv4's 169.254/16 is not meant.
TEST(SocketAddress, KnowsLinkLocalAddresses) {
  for (const char* ip : {"fe80::", "fe80::1", "fe8f::1", "fe90::1", "febf:ffff::1"}) {
    EXPECT_TRUE(parse(ip, 1).link_local()) << ip;
  }
  for (const char* ip : {"fe7f::1", "fec0::1", "ff80::1", "fd80::1", "::1", "169.254.1.1", "254.128.0.1"}) {
    EXPECT_FALSE(parse(ip, 1).link_local()) << ip;
  }
  EXPECT_FALSE(SocketAddress{}.link_local());
}

TEST(SocketAddress, ComparesHostAndPort) {
  const SocketAddress a = parse("10.0.0.1", 1);
  EXPECT_EQ(a.with_port(2).port(), 2);
  EXPECT_EQ(a.port(), 1);
  EXPECT_NE(a, a.with_port(2));
  EXPECT_TRUE(a.same_host(a.with_port(2)));
  EXPECT_FALSE(a.same_host(parse("10.0.0.2", 1)));
  EXPECT_FALSE(parse("fe80::1", 1, 1).same_host(parse("fe80::1", 1, 2)));
  EXPECT_FALSE(parse("0.0.0.0", 1).same_host(parse("::", 1)));
}

TEST(SocketAddress, WritesItself) {
  EXPECT_EQ(parse("10.0.0.1", 9228).text(), "10.0.0.1:9228");
  EXPECT_EQ(parse("fd00::1", 9228).text(), "[fd00::1]:9228");
  EXPECT_EQ(parse("fd00::1", 9228).ip_text(), "fd00::1");
  EXPECT_FALSE(SocketAddress{}.text().empty());
}

TEST(SocketAddress, ItsWordsDifferInWhateverItDiffers) {
  const SocketAddress base = parse("fe80::1", 9228, 3);
  const SocketAddress all[] = {base,
                               base.with_port(9229),
                               parse("fe80::1", 9228, 4),
                               parse("fe80::2", 9228, 3),
                               parse("0.0.0.0", 9228),
                               parse("::", 9228)};
  for (const SocketAddress& one : all) {
    for (const SocketAddress& other : all) EXPECT_EQ(one.words() == other.words(), one == other);
    EXPECT_NE(one.words(1), one.words(2));
  }
}

TEST(SocketAddress, HashesEqualAlikeAndOthersApart) {
  std::unordered_set<std::size_t> seen;
  for (int host = 1; host < 255; ++host) {
    const std::string ip = "10.0.0." + std::to_string(host);
    for (std::uint16_t port = 9000; port < 9016; ++port) seen.insert(parse(ip.c_str(), port).hash());
  }
  EXPECT_GT(seen.size(), 254u * 16u * 99 / 100);
  EXPECT_EQ(parse("10.0.0.1", 5).hash(), parse("10.0.0.1", 5).hash());
}

}  // namespace
}  // namespace cluster
