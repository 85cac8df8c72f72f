// The gate for connection messages.
#include "connection/connection_message.h"

#include <gtest/gtest.h>

#include <vector>

namespace cluster::connection {
namespace {

std::vector<std::byte> bytes_of(const Message& message) {
  const MessageBytes encoded = encode(message);
  return {encoded.span().begin(), encoded.span().end()};
}

TEST(ConnectionMessage, ComesBackAsItWasEncoded) {
  const std::vector<std::byte> data(kPrivateDataMax, std::byte{7});
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kPrivateDataMax}) {
    for (int kind = 1; kind <= static_cast<int>(MessageKind::claim); ++kind) {
      const Message sent{static_cast<MessageKind>(kind), 0x1122334455667788, ConstBytes(data).first(size)};
      const std::vector<std::byte> encoded = bytes_of(sent);
      Message got;
      ASSERT_TRUE(decode(encoded, got));
      EXPECT_EQ(got.kind, sent.kind);
      EXPECT_EQ(got.id, sent.id);
      EXPECT_TRUE(std::ranges::equal(got.data, sent.data));
    }
  }
}

TEST(ConnectionMessage, RefusesWhatNobodyEncodes) {
  const std::vector<std::byte> good = bytes_of({MessageKind::accept, 5});
  Message got;
  for (std::size_t size = 0; size < kMessageHeader; ++size)
    EXPECT_FALSE(decode(ConstBytes(good).first(size), got)) << size;
  for (const std::size_t at : {0, 1, 7}) {
    std::vector<std::byte> bad = good;
    bad[at] = std::byte{9};
    EXPECT_FALSE(decode(bad, got)) << at;
  }
  std::vector<std::byte> bad = good;
  bad[0] = std::byte{0};
  EXPECT_FALSE(decode(bad, got));
  bad = good;
  bad.resize(kMessageMax + 1);
  EXPECT_FALSE(decode(bad, got));
}

TEST(ConnectionMessage, CarriesAnAddress) {
  std::byte ip[16] = {std::byte{0xfe}, std::byte{0x80}};
  ip[15] = std::byte{9};
  const SocketAddress sender = SocketAddress::v6(ip, 9228, 3);
  const std::byte short_ip[] = {std::byte{10}, std::byte{0}, std::byte{0}, std::byte{1}};
  const SocketAddress v4 = SocketAddress::v4(short_ip, 700);
  EXPECT_EQ(decode_address(encode_address(v4), {}), v4);
  EXPECT_EQ(decode_address(encode_address(sender.with_port(5)), sender), sender.with_port(5))
      << "on the link of its sender";
  EXPECT_TRUE(decode_address(encode_address(v4.with_port(0)), {}).empty());
  const AddressBytes good = encode_address(v4);
  EXPECT_TRUE(decode_address(ConstBytes(good).first(19), {}).empty());
  EXPECT_TRUE(decode_address(AddressBytes{}, {}).empty());
}

}  // namespace
}  // namespace cluster::connection
