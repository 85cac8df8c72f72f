// The gate for messages of peers, greetings, own addresses, and the order of messages: parts of util/ip without a node.
#include "packet.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "order.h"

namespace cluster::ip {
namespace {

std::vector<std::uint8_t> packet(std::size_t length, std::uint8_t first) {
  std::vector<std::uint8_t> message(kHeaderBytes + length, 0);
  if (length > 0) message[kHeaderBytes] = first;
  return message;
}

TEST(Packet, HasTwoEnds) {
  std::vector<std::uint8_t> ipv4 = packet(20, 0x45);
  const std::uint8_t from[] = {10, 9, 0, 1}, to[] = {10, 9, 0, 2};
  std::memcpy(&ipv4[kHeaderBytes + 12], from, 4);
  std::memcpy(&ipv4[kHeaderBytes + 16], to, 4);
  ASSERT_TRUE(ends_of(ipv4));
  EXPECT_EQ(text_of(ends_of(ipv4)->from), "10.9.0.1");
  EXPECT_EQ(text_of(ends_of(ipv4)->to), "10.9.0.2");

  std::vector<std::uint8_t> ipv6 = packet(40, 0x60);
  ipv6[kHeaderBytes + 8] = ipv6[kHeaderBytes + 24] = 0xfd;
  ipv6[kHeaderBytes + 23] = 1;
  ipv6[kHeaderBytes + 39] = 2;
  ASSERT_TRUE(ends_of(ipv6));
  EXPECT_EQ(text_of(ends_of(ipv6)->from), "fd00::1");
  EXPECT_EQ(text_of(ends_of(ipv6)->to), "fd00::2");
}

TEST(Packet, IsRefusedIfMalformed) {
  EXPECT_FALSE(ends_of({}));
  EXPECT_FALSE(ends_of(packet(0, 0)));
  EXPECT_FALSE(ends_of(packet(19, 0x45)));
  EXPECT_FALSE(ends_of(packet(39, 0x60)));
  EXPECT_FALSE(ends_of(packet(40, 0x50)));
  EXPECT_TRUE(ends_of(packet(65535, 0x45)));
  EXPECT_FALSE(ends_of(packet(65536, 0x45)));
  std::vector<std::uint8_t> flagged = packet(20, 0x45);
  flagged[0] = 3;
  EXPECT_TRUE(ends_of(flagged));
  flagged[0] = 4;
  EXPECT_FALSE(ends_of(flagged));
}

TEST(Packet, OfIpv6HasNoAddressOfIpv4) {
  std::vector<std::uint8_t> message = packet(40, 0x60);
  ASSERT_TRUE(ends_of(message));
  const std::uint8_t mapped[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 9, 0, 1};
  std::memcpy(&message[kHeaderBytes + 8], mapped, sizeof mapped);
  EXPECT_FALSE(ends_of(message));
}

TEST(Greeting, IsReadAsWritten) {
  const Greeting greeting{
      true, 3, {OwnAddress::parse("10.9.0.1/24").address, OwnAddress::parse("fd09::1/64").address}};
  std::uint8_t bytes[100];
  const std::size_t length = write(greeting, bytes);
  EXPECT_FALSE(ends_of({bytes, length}));
  const std::optional<Greeting> read = read_greeting({bytes, length});
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->wants_answer);
  EXPECT_EQ(read->queues, 3);
  EXPECT_EQ(read->addresses, greeting.addresses);
  for (std::size_t cut = 0; cut < length; ++cut) EXPECT_FALSE(read_greeting({bytes, cut})) << cut;
  EXPECT_FALSE(read_greeting({bytes, length + 1}));
  ++bytes[kHeaderBytes];
  EXPECT_FALSE(read_greeting({bytes, length})) << "another version";
  const Greeting crowded{true, 3, {greeting.addresses[0], greeting.addresses[1], greeting.addresses[0]}};
  EXPECT_FALSE(read_greeting({bytes, write(crowded, bytes)})) << "too many addresses";
}

TEST(Number, IsReadAsWritten) {
  std::uint8_t bytes[kNumberBytes];
  for (const std::uint32_t number : {0U, 1U, 0x12345678U, ~0U}) {
    write_number(number, bytes);
    EXPECT_EQ(read_number(bytes), number);
  }
}

TEST(OwnAddress, IsParsed) {
  const OwnAddress own = OwnAddress::parse("10.9.3.1/22");
  EXPECT_EQ(text_of(own.address), "10.9.3.1");
  EXPECT_EQ(text_of(own.broadcast()), "10.9.3.255");
  EXPECT_EQ(text_of(OwnAddress::parse("10.9.3.1/17").broadcast()), "10.9.127.255");
  for (const char* single : {"10.9.0.1/31", "10.9.0.1/32", "fd09::1/64"})
    EXPECT_EQ(OwnAddress::parse(single).broadcast(), OwnAddress::parse(single).address) << single;
  for (const char* wrong : {"", "10.9.0.1", "10.9.0.1/", "10.9.0.1/0", "10.9.0.1/33", "fd09::1/129",
                            "10.9.0/24", "fd09::1/6x", "239.1.1.1/24", "ff02::1/64", "255.255.255.255/8"})
    EXPECT_THROW(OwnAddress::parse(wrong), std::runtime_error) << wrong;
}

/// The numbers in the order of delivery.
std::vector<int> delivered(Order<int>& order, std::initializer_list<int> arrivals) {
  std::vector<int> all;
  const auto take_due = [&] {
    while (const std::optional<int> due = order.take_due()) all.push_back(*due);
  };
  for (const int number : arrivals) {
    if (order.is_due(static_cast<std::uint32_t>(number), number)) {
      all.push_back(number);
      take_due();
    }
  }
  return all;
}

TEST(Order, IsThatOfTheNumbers) {
  Order<int> order;
  EXPECT_EQ(delivered(order, {7, 8, 11, 10, 9, 12}), (std::vector{7, 8, 9, 10, 11, 12}));
  EXPECT_TRUE(order.empty());
  EXPECT_EQ(delivered(order, {3}), std::vector{3}) << "a late one is due";
  EXPECT_EQ(delivered(order, {13}), std::vector{13}) << "and changes nothing";
}

TEST(Order, OfWrappingNumbers) {
  Order<int> order;
  EXPECT_EQ(delivered(order, {-2, 0, 1, -1}), (std::vector{-2, -1, 0, 1}));
}

TEST(Order, GoesOnWithoutTheMissing) {
  Order<int> order;
  EXPECT_EQ(delivered(order, {1, 5, 4, 8}), std::vector{1});
  order.skip();
  EXPECT_EQ(delivered(order, {6}), std::vector<int>{}) << "6 is kept behind 4 and 5";
  EXPECT_EQ(order.take_due(), 4);
  EXPECT_EQ(order.take_due(), 5);
  EXPECT_EQ(order.take_due(), 6);
  EXPECT_EQ(order.take_due(), std::nullopt);
  order.skip();
  EXPECT_EQ(order.take_due(), 8);
  order.restart(100);
  EXPECT_EQ(delivered(order, {101, 100}), (std::vector{100, 101}));
}

}  // namespace
}  // namespace cluster::ip
