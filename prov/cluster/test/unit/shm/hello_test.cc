#include "shm/hello.h"

#include <gtest/gtest.h>

namespace cluster::shm {
namespace {

SocketAddress v4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d, std::uint16_t port) {
  const std::byte ip[] = {std::byte{a}, std::byte{b}, std::byte{c}, std::byte{d}};
  return SocketAddress::v4(ip, port);
}

const Hello kHello{v4(10, 0, 0, 1, 9228), 77, {1024, 1 << 20}, {0x7f0012345678, 42}};

TEST(Hello, SurvivesTheWay) {
  const std::optional<Hello> hello = decode(encode(kHello));
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->writer, kHello.writer);
  EXPECT_EQ(hello->epoch, 77u);
  EXPECT_EQ(hello->geometry, kHello.geometry);
  EXPECT_EQ(hello->proof.address, kHello.proof.address);
  EXPECT_EQ(hello->proof.value, kHello.proof.value);
}

TEST(Hello, CarriesIpv6WithItsScope) {
  Hello hello = kHello;
  std::byte ip[16] = {std::byte{0xfe}, std::byte{0x80}};
  ip[15] = std::byte{9};
  hello.writer = SocketAddress::v6(ip, 1, 3);
  const std::optional<Hello> other = decode(encode(hello));
  ASSERT_TRUE(other);
  EXPECT_EQ(other->writer, hello.writer);
}

TEST(Hello, RefusesWhatMakesNoSense) {
  const HelloMessage good = encode(kHello);
  HelloMessage bad = good;
  bad.magic ^= 1;
  EXPECT_FALSE(decode(bad));
  bad = good;
  ++bad.layout_version;
  EXPECT_FALSE(decode(bad));
  bad = good;
  bad.slots = 1000;
  EXPECT_FALSE(decode(bad));
  bad = good;
  bad.arena_bytes = 0x80000000u;
  EXPECT_FALSE(decode(bad));
  bad = good;
  bad.family = 5;
  EXPECT_FALSE(decode(bad));
  bad = good;
  bad.port = 0;
  EXPECT_FALSE(decode(bad));
  bad = good;
  std::memset(bad.ip, 0, sizeof bad.ip);
  EXPECT_FALSE(decode(bad));
}

}  // namespace
}  // namespace cluster::shm
