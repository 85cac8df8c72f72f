// Why no service hands out AF_XDP sockets either. The kernel fixes where such a socket is bound, and the
// service's program restricts what it receives. But nothing restricts what it sends, and one socket takes a
// whole receive queue of the interface. If one of these tests fails, the kernel has changed and the decision
// must be reviewed (man/fi_cluster_containers.7).
#include <gtest/gtest.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <sys/resource.h>

#include "conformance/link_station.h"
#include "conformance/two_hosts.h"
#include "support/passed_socket.h"
#include "support/xdp_socket.h"

namespace cluster::os {
namespace {

using test::as_plain_user;
using test::kFrameOfNoHost;
using test::kOtherEtherType;
using test::XdpProgram;
using test::XdpSocket;
using Family = SocketAddress::Family;

class PassedXdpSocketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to make AF_XDP sockets and to become another user";
    std::string reason;
    hosts_ = test::TwoHosts::make(reason);
    if (!hosts_) GTEST_SKIP() << reason;
    interface_ = static_cast<unsigned>(hosts_->interface(0).index);
    socket_ = made();
    if (socket_->number() < 0) GTEST_SKIP() << "this kernel has no AF_XDP";
    ASSERT_EQ(socket_->register_frames(), 0) << std::strerror(errno);
    ASSERT_TRUE(socket_->make_rings()) << std::strerror(errno);
    ASSERT_EQ(socket_->bind(interface_), 0) << std::strerror(errno);
  }
  /// On host 0.
  std::unique_ptr<XdpSocket> made() const {
    std::unique_ptr<XdpSocket> result;
    hosts_->on(0, [&] { result = std::make_unique<XdpSocket>(XdpSocket::make()); });
    return result;
  }
  std::shared_ptr<UdpPort> port(int host) const {
    std::shared_ptr<UdpPort> opened;
    int error = 0;
    hosts_->on(host, [&] { opened = UdpPort::open(hosts_->address(host, Family::v4), error); });
    EXPECT_NE(opened, nullptr) << std::strerror(error);
    return opened;
  }
  /// From host 1.
  void send_to(const SocketAddress& to, std::string_view words) const {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(to.port());
    std::memcpy(&address.sin_addr, to.ip().data(), sizeof address.sin_addr);
    EXPECT_EQ(::sendto(sender_->socket(), words.data(), words.size(), 0,
                       reinterpret_cast<const sockaddr*>(&address), sizeof address),
              static_cast<ssize_t>(words.size()));
  }

  std::unique_ptr<test::TwoHosts> hosts_;
  unsigned interface_ = 0;
  std::unique_ptr<XdpSocket> socket_;
  std::shared_ptr<UdpPort> sender_;
};

TEST_F(PassedXdpSocketTest, APlainUserMakesNoneItself) {
  EXPECT_EQ(as_plain_user([] { return ::socket(AF_XDP, SOCK_RAW, 0); }), EPERM);
}

TEST_F(PassedXdpSocketTest, ItIsNotBoundAgain) {
  EXPECT_EQ(as_plain_user([&] { return socket_->bind(interface_); }), EBUSY);
  unsigned loopback = 1;
  EXPECT_EQ(as_plain_user([&] { return socket_->bind(loopback); }), EBUSY);
}

TEST_F(PassedXdpSocketTest, UnlessItIsPassedBeforeItIsBound) {
  const std::unique_ptr<XdpSocket> unbound = made();
  EXPECT_EQ(as_plain_user([&] {
              const bool ready = unbound->register_frames() == 0 && unbound->make_rings();
              return ready ? unbound->bind(1) : -1;
            }),
            0);
}

TEST_F(PassedXdpSocketTest, ItsFramesAreLockedMemory) {
  const std::unique_ptr<XdpSocket> unbound = made();
  EXPECT_EQ(as_plain_user([&] {
              const rlimit none{0, 0};
              return ::setrlimit(RLIMIT_MEMLOCK, &none) == 0 ? unbound->register_frames() : -1;
            }),
            ENOBUFS);
}

TEST_F(PassedXdpSocketTest, OneQueueHasOneSocket) {
  const std::unique_ptr<XdpSocket> second = made();
  ASSERT_EQ(second->register_frames(), 0);
  ASSERT_TRUE(second->make_rings());
  EXPECT_EQ(second->bind(interface_), -1);
  EXPECT_EQ(errno, EBUSY);
}

TEST_F(PassedXdpSocketTest, ItSendsAnyFrame) {
  Descriptor witness;
  hosts_->on(
      1, [&] { witness = Descriptor(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(kOtherEtherType))); });
  ASSERT_TRUE(witness);
  ASSERT_EQ(
      as_plain_user([&] { return socket_->send(as_bytes(kFrameOfNoHost.data(), kFrameOfNoHost.size())); }),
      0);
  pollfd watch{witness.number(), POLLIN, 0};
  ASSERT_EQ(::poll(&watch, 1, 5000), 1);
  std::array<char, 2 * kFrameOfNoHost.size()> seen;
  ASSERT_EQ(::recv(witness.number(), seen.data(), seen.size(), 0),
            static_cast<ssize_t>(kFrameOfNoHost.size()));
  EXPECT_EQ(std::memcmp(seen.data(), kFrameOfNoHost.data(), kFrameOfNoHost.size()), 0);
}

TEST_F(PassedXdpSocketTest, APlainUserLoadsNoProgram) {
  const Descriptor sockets = XdpProgram::make_map();
  ASSERT_TRUE(sockets);
  ASSERT_TRUE(XdpProgram::load(sockets.number(), 9)) << std::strerror(errno);
  EXPECT_EQ(as_plain_user([&] { return XdpProgram::load(sockets.number(), 9).number(); }), EPERM);
}

TEST_F(PassedXdpSocketTest, ItReceivesWhatTheProgramGivesItAndNoMore) {
  const std::shared_ptr<UdpPort> given = port(0);
  const std::shared_ptr<UdpPort> of_others = port(0);
  sender_ = port(1);
  XdpProgram program;
  hosts_->on(0, [&] {
    ASSERT_TRUE(program.serve(interface_, given->name().port(), *socket_)) << std::strerror(errno);
  });
  socket_->offer_slots();
  send_to(of_others->name(), "not for it");
  send_to(given->name(), "for it");
  EXPECT_EQ(as_plain_user([&] {
              pollfd watch{socket_->number(), POLLIN, 0};
              if (::poll(&watch, 1, 5000) != 1) return -1;
              const ConstBytes first = socket_->receive();
              errno = first.empty() ? ENODATA : EBADMSG;
              const bool right = first.size() >= 48 && std::memcmp(first.data() + 42, "for it", 6) == 0;
              return right && socket_->receive().empty() ? 0 : -1;
            }),
            0);
  pollfd watch{of_others->socket(), POLLIN, 0};
  EXPECT_EQ(::poll(&watch, 1, 5000), 1) << "the other datagram goes its way";
}

}  // namespace
}  // namespace cluster::os
