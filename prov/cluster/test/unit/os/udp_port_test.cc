#include "os/udp_port.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>

#include "conformance/link_station.h"
#include "conformance/two_hosts.h"
#include "os/keep_alive_responder.h"

namespace cluster::os {
namespace {

using Family = SocketAddress::Family;

TEST(UdpPort, TakesAFreePortAndReportsIt) {
  for (const Family family : {Family::v4, Family::v6}) {
    int error = -1;
    const auto port = UdpPort::open(test::loopback(family), error);
    ASSERT_TRUE(port);
    EXPECT_EQ(error, 0);
    EXPECT_NE(port->name().port(), 0);
    EXPECT_TRUE(port->name().same_host(test::loopback(family)));
  }
}

TEST(UdpPort, SaysWhyItCannot) {
  int error = 0;
  const auto port = UdpPort::open(test::loopback(Family::v4), error);
  ASSERT_TRUE(port);
  EXPECT_FALSE(UdpPort::open(port->name(), error));
  EXPECT_EQ(error, EADDRINUSE);
  const std::byte elsewhere[4] = {std::byte{192}, std::byte{0}, std::byte{2}, std::byte{1}};  // RFC 5737
  EXPECT_FALSE(UdpPort::open(SocketAddress::v4(elsewhere, 0), error));
  EXPECT_EQ(error, EADDRNOTAVAIL);
  EXPECT_FALSE(UdpPort::open({}, error));
  EXPECT_EQ(error, EAFNOSUPPORT);
}

TEST(UdpPort, TheNumberIsFreeTheMomentItsOwnerIsGone) {
  test::World world;
  int error = 0;
  const SocketAddress name = UdpPort::open(test::loopback(Family::v4), error)->name();
  for (int i = 0; i < 50; ++i) {
    const auto port = UdpPort::open(name, error);
    ASSERT_TRUE(port) << i << ": " << error;
    if (i % 2 == 0) {
      EXPECT_TRUE(start_keep_alive_responder(port, world.log));
    }
  }
}

TEST(UdpPort, SharingWithTheKeepAliveResponderAdmitsNoOtherProcess) {
  test::World world;
  int error = 0;
  const auto port = UdpPort::open(test::loopback(Family::v4), error);
  const auto responder = start_keep_alive_responder(port, world.log);
  ASSERT_TRUE(responder) << world.log.text();
  EXPECT_FALSE(UdpPort::open(port->name(), error));
  EXPECT_EQ(error, EADDRINUSE);
}

/// A locked filter stands for a kernel that has no memory for another one.
TEST(UdpPort, SaysThatItStillThinsOutWhereTheKernelKeepsTheFilter) {
  int error = 0;
  const auto port = UdpPort::open(test::loopback(Family::v4), error);
  link::Thinning thinning;
  thinning.on = true;
  ASSERT_TRUE(port->thin(thinning).on);
  const int locked = 1;
  ASSERT_EQ(::setsockopt(port->socket(), SOL_SOCKET, SO_LOCK_FILTER, &locked, sizeof locked), 0);
  EXPECT_TRUE(port->thin({}).on);
  EXPECT_TRUE(port->thinning().on);
}

TEST(UdpPort, NoErrorsIsNone) {
  int error = 0;
  const auto port = UdpPort::open(test::loopback(Family::v4), error);
  link::PathError path_error;
  EXPECT_EQ(port->read_path_errors({&path_error, 1}), 0U);
}

}  // namespace
}  // namespace cluster::os
