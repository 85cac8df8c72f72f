#include "shm/hello.h"

#include <gtest/gtest.h>

#include <cstring>

namespace cluster::shm {
namespace {

SocketAddress v4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d, std::uint16_t port) {
  const std::byte ip[] = {std::byte{a}, std::byte{b}, std::byte{c}, std::byte{d}};
  return SocketAddress::v4(ip, port);
}

const Hello kHello{v4(10, 0, 0, 1, 9228), 77, {1024, 1 << 20}, {0x7f0012345678, 42}};

TEST(Hello, SaysWhoseRingItIs) {
  EXPECT_TRUE(kHello.valid());
  EXPECT_EQ(kHello.writer(), v4(10, 0, 0, 1, 9228));
}

TEST(Hello, CarriesIpv6WithItsScope) {
  std::byte ip[16] = {std::byte{0xfe}, std::byte{0x80}};
  ip[15] = std::byte{9};
  const SocketAddress writer = SocketAddress::v6(ip, 1, 3);
  const Hello hello(writer, 77, kHello.geometry);
  EXPECT_TRUE(hello.valid());
  EXPECT_EQ(hello.writer(), writer);
}

TEST(Hello, RefusesWhatMakesNoSense) {
  const Hello good = kHello;
  Hello bad = good;
  bad.magic ^= 1;
  EXPECT_FALSE(bad.valid());
  bad = good;
  ++bad.layout_version;
  EXPECT_FALSE(bad.valid());
  bad = good;
  bad.geometry.slots = 1000;
  EXPECT_FALSE(bad.valid());
  bad = good;
  bad.geometry.arena_bytes = 0x80000000u;
  EXPECT_FALSE(bad.valid());
  bad = good;
  bad.family = 5;
  EXPECT_FALSE(bad.valid());
  bad = good;
  bad.port = 0;
  EXPECT_FALSE(bad.valid());
  bad = good;
  std::memset(bad.ip, 0, sizeof bad.ip);
  EXPECT_FALSE(bad.valid());
}

}  // namespace
}  // namespace cluster::shm
