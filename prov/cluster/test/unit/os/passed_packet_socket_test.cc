// Why no service hands out packet sockets to programs without CAP_NET_RAW: the kernel asks for the capability when the
// socket is made, and never again. A locked filter restricts what the socket receives; nothing restricts what
// it sends, or where. If one of these tests fails, the kernel can do so now, and such a service is possible
// (man/fi_cluster_containers.7).
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "os/descriptor.h"
#include "os/port_filter.h"
#include "support/passed_socket.h"

namespace cluster::os {
namespace {

using test::as_plain_user;
using test::kFrameOfNoHost;
using test::kOtherEtherType;

class PassedPacketSocketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to make packet sockets and to become another user";
    socket_ = packet_socket(ETH_P_IP);
    const std::byte ip[] = {std::byte{127}, std::byte{0}, std::byte{0}, std::byte{1}};
    FilterProgram filter = frames_for(SocketAddress::v4(ip, 9), ETH_P_IP);
    ASSERT_EQ(attach_filter(socket_.number(), SO_ATTACH_FILTER, filter), 0);
    const int locked = 1;
    ASSERT_EQ(::setsockopt(socket_.number(), SOL_SOCKET, SO_LOCK_FILTER, &locked, sizeof locked), 0);
  }
  static sockaddr_ll place(std::uint16_t protocol) {
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(protocol);
    address.sll_ifindex = static_cast<int>(::if_nametoindex("lo"));
    return address;
  }
  static Descriptor packet_socket(std::uint16_t protocol) {
    Descriptor made(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(protocol)));
    EXPECT_TRUE(made) << std::strerror(errno);
    EXPECT_EQ(bind_to(made, protocol), 0);
    return made;
  }
  static int bind_to(const Descriptor& socket, std::uint16_t protocol) {
    const sockaddr_ll address = place(protocol);
    return ::bind(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }

  Descriptor socket_;
};

TEST_F(PassedPacketSocketTest, APlainUserMakesNoneItself) {
  EXPECT_EQ(as_plain_user([] { return ::socket(AF_PACKET, SOCK_RAW, htons(ETH_P_IP)); }), EPERM);
}

TEST_F(PassedPacketSocketTest, ItsFilterStays) {
  EXPECT_EQ(as_plain_user([&] {
              const int none = 0;
              return ::setsockopt(socket_.number(), SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof none);
            }),
            EPERM);
}

TEST_F(PassedPacketSocketTest, ItIsBoundAgainToAnyInterfaceAndProtocol) {
  EXPECT_EQ(as_plain_user([&] { return bind_to(socket_, kOtherEtherType); }), 0);
}

TEST_F(PassedPacketSocketTest, ItSendsAnyFrame) {
  const Descriptor witness = packet_socket(kOtherEtherType);
  ASSERT_EQ(as_plain_user([&] {
              const sockaddr_ll to = place(ETH_P_IP);
              return static_cast<int>(::sendto(socket_.number(), kFrameOfNoHost.data(), kFrameOfNoHost.size(),
                                               0, reinterpret_cast<const sockaddr*>(&to), sizeof to));
            }),
            0);
  pollfd watch{witness.number(), POLLIN, 0};
  ASSERT_EQ(::poll(&watch, 1, 5000), 1);
  std::array<char, 2 * kFrameOfNoHost.size()> seen;
  ASSERT_EQ(::recv(witness.number(), seen.data(), seen.size(), 0),
            static_cast<ssize_t>(kFrameOfNoHost.size()));
  EXPECT_EQ(std::memcmp(seen.data(), kFrameOfNoHost.data(), kFrameOfNoHost.size()), 0);
}

}  // namespace
}  // namespace cluster::os
