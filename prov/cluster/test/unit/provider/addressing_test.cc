// The addresses that a caller of fi_getinfo means: node and service, text forms, hints; and which error says
// that there are none. fi_getinfo(3)
#include "provider/addressing.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>

#include <cstring>

#include "unit/provider/info_on_stack.h"

namespace cluster::provider {
namespace {

using Family = SocketAddress::Family;

class AddressingTest : public testing::Test, protected InfoOnStack {
 protected:
  int read(const char* node, const char* service, std::uint64_t flags) {
    reason.clear();
    const int error = read_addresses(node, service, flags, &info, out, reason);
    EXPECT_EQ(error != 0, !reason.empty()) << "a refusal has a reason";
    return error;
  }
  /// An address for the hints, which borrow it.
  static SocketAddress host(int last, std::uint16_t port) {
    const std::byte ip[] = {std::byte{192}, std::byte{0}, std::byte{2}, static_cast<std::byte>(last)};
    return SocketAddress::v4(ip, port);
  }
  void hint_source(const SocketAddress& address) {
    info.src_addrlen = address.to(source);
    info.src_addr = &source;
  }
  void hint_destination(const SocketAddress& address) {
    info.dest_addrlen = address.to(destination);
    info.dest_addr = &destination;
  }

  sockaddr_storage source{};
  sockaddr_storage destination{};
  Addresses out;
  std::string reason;
};

TEST_F(AddressingTest, NodeAndServiceAreThePeerOrWithFiSourceThisSide) {
  ASSERT_EQ(read("192.0.2.1", "9228", FI_NUMERICHOST), 0);
  EXPECT_EQ(out.destination, host(1, 9228));
  EXPECT_TRUE(out.source.empty());
  EXPECT_EQ(out.port, 0);
  EXPECT_EQ(out.family, Family::v4);
  ASSERT_EQ(read("192.0.2.1", "9228", FI_NUMERICHOST | FI_SOURCE), 0);
  EXPECT_EQ(out.source, host(1, 9228));
  EXPECT_TRUE(out.destination.empty());
  EXPECT_EQ(out.port, 9228);
}

TEST_F(AddressingTest, AServiceAloneIsAPortOfAnyAddress) {
  ASSERT_EQ(read(nullptr, "9228", FI_SOURCE), 0);
  EXPECT_TRUE(out.source.wildcard());
  EXPECT_EQ(out.port, 9228);
  EXPECT_EQ(out.family, Family::v4);
}

TEST_F(AddressingTest, NothingMeansAnyAddress) {
  ASSERT_EQ(read(nullptr, nullptr, 0), 0);
  EXPECT_TRUE(out.source.empty());
  EXPECT_TRUE(out.destination.empty());
  EXPECT_EQ(out.family, Family::none);
}

/// A malformed call must not fail with ENODATA, because after that callers ask other providers.
TEST_F(AddressingTest, FiSourceWithoutAnyAddressIsAnInvalidCall) {
  EXPECT_EQ(read(nullptr, nullptr, FI_SOURCE), -FI_EINVAL);
  hint_source(host(1, 1));
  EXPECT_EQ(read(nullptr, nullptr, FI_SOURCE), -FI_EINVAL);
}

TEST_F(AddressingTest, WhatCannotBeResolvedIsNotFound) {
  EXPECT_EQ(read("no number", "9228", FI_NUMERICHOST), -FI_ENODATA);
  EXPECT_EQ(read("192.0.2.1", "no such service", FI_NUMERICHOST), -FI_ENODATA);
  EXPECT_EQ(read("fi_sockaddr://", nullptr, 0), -FI_ENODATA);
  EXPECT_EQ(read("fi_sockaddr_in6://[fd00::1", "1", 0), -FI_ENODATA);
}

TEST_F(AddressingTest, TheFormatInTheHintsDecidesTheFamily) {
  info.addr_format = FI_SOCKADDR_IN6;
  EXPECT_EQ(read("192.0.2.1", "9228", FI_NUMERICHOST), -FI_ENODATA);
  EXPECT_EQ(read("fi_sockaddr_in://192.0.2.1:9228", nullptr, FI_NUMERICHOST), -FI_ENODATA);
  ASSERT_EQ(read("fd00::1", "9228", FI_NUMERICHOST), 0);
  EXPECT_EQ(out.destination.text(), "[fd00::1]:9228");
  EXPECT_EQ(out.family, Family::v6);
  hint_source(host(1, 1));
  EXPECT_EQ(read(nullptr, nullptr, 0), -FI_ENODATA);
}

TEST_F(AddressingTest, AddressesInTheHintsStandWhereTheCallNamesNone) {
  hint_source(host(1, 11));
  hint_destination(host(2, 12));
  ASSERT_EQ(read(nullptr, nullptr, 0), 0);
  EXPECT_EQ(out.source, host(1, 11));
  EXPECT_EQ(out.destination, host(2, 12));
  EXPECT_EQ(out.port, 11);
  ASSERT_EQ(read("192.0.2.3", "13", FI_NUMERICHOST), 0);
  EXPECT_EQ(out.source, host(1, 11));
  EXPECT_EQ(out.destination, host(3, 13));
  ASSERT_EQ(read("192.0.2.3", "13", FI_NUMERICHOST | FI_SOURCE), 0);
  EXPECT_EQ(out.source, host(3, 13));
  EXPECT_EQ(out.destination, host(2, 12));
  info.dest_addrlen = 3;
  EXPECT_EQ(read(nullptr, nullptr, 0), -FI_ENODATA) << "cut short";
}

TEST_F(AddressingTest, BothEndsAreOfOneFamily) {
  hint_source(host(1, 11));
  EXPECT_EQ(read("fd00::1", "9228", FI_NUMERICHOST), -FI_ENODATA);
}

TEST(AddressTextTest, IsReadInAllItsForms) {
  struct Case {
    const char* text;
    Family family;
    const char* host;
    const char* port;
  };
  for (const Case& one : {Case{"fi_sockaddr_in://192.0.2.1:9228", Family::v4, "192.0.2.1", "9228"},
                          Case{"fi_sockaddr_in://192.0.2.1", Family::v4, "192.0.2.1", ""},
                          Case{"fi_sockaddr_in6://[fd00::1]:9228", Family::v6, "fd00::1", "9228"},
                          Case{"fi_sockaddr_in6://[fd00::1]", Family::v6, "fd00::1", ""},
                          Case{"fi_sockaddr://node7:1", Family::none, "node7", "1"},
                          Case{"fi_sockaddr://:1", Family::none, "", "1"}}) {
    const std::optional<AddressText> read = parse_address_text(one.text);
    ASSERT_TRUE(read) << one.text;
    EXPECT_EQ(read->family, one.family) << one.text;
    EXPECT_EQ(read->host, one.host) << one.text;
    EXPECT_EQ(read->port, one.port) << one.text;
  }
  for (const char* text : {"192.0.2.1:9228", "http://192.0.2.1", "fi_sockaddr_in6://[fd00::1",
                           "fi_sockaddr_in6://[fd00::1]9228", ""}) {
    EXPECT_FALSE(parse_address_text(text)) << text;
  }
}

}  // namespace
}  // namespace cluster::provider
