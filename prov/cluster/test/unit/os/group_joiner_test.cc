// Whether the sending host receives its own group frames; it needs them only if another member runs there.
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <vector>

#include "conformance/link_station.h"
#include "conformance/two_hosts.h"
#include "os/udp_link.h"

namespace cluster::os {
namespace {

using Family = SocketAddress::Family;

class GroupJoinerTest : public testing::TestWithParam<Family> {
 protected:
  void SetUp() override {
    int error = 0;
    port_ = UdpPort::open(test::loopback(GetParam()), error);
    ASSERT_TRUE(port_) << error;
    joiner_ = open_group_joiner(port_, static_cast<int>(if_nametoindex("lo")), world_.environment);
  }
  bool v6() const { return GetParam() == Family::v6; }
  /// 239.192.7.`number` or ff15::`number`.
  SocketAddress group(int number) const {
    std::vector<std::byte> ip(v6() ? 16 : 4);
    ip[0] = std::byte{v6() ? std::uint8_t{0xff} : std::uint8_t{239}};
    ip[1] = std::byte{v6() ? std::uint8_t{0x15} : std::uint8_t{192}};
    ip.back() = static_cast<std::byte>(number);
    return v6() ? SocketAddress::v6(ip.data(), 7000) : SocketAddress::v4(ip.data(), 7000);
  }
  SocketAddress here() const { return port_->name().with_port(1); }
  /// Of a documentation network (RFC 5737, RFC 3849).
  SocketAddress elsewhere() const {
    const std::byte v4[4] = {std::byte{192}, std::byte{0}, std::byte{2}, std::byte{1}};
    const std::byte v6_ip[16] = {std::byte{0x20}, std::byte{0x01}, std::byte{0x0d}, std::byte{0xb8}};
    return v6() ? SocketAddress::v6(v6_ip, 1) : SocketAddress::v4(v4, 1);
  }
  void join(const std::vector<SocketAddress>& members) {
    std::string reason;
    joined_.push_back(joiner_->join(group(static_cast<int>(joined_.size()) + 1), members, reason));
    EXPECT_TRUE(joined_.back()) << reason;
  }
  bool loops() const {
    int value = -1;
    socklen_t size = sizeof value;
    const int level = v6() ? IPPROTO_IPV6 : IPPROTO_IP;
    EXPECT_EQ(
        getsockopt(port_->socket(), level, v6() ? IPV6_MULTICAST_LOOP : IP_MULTICAST_LOOP, &value, &size), 0);
    return value != 0;
  }

  test::World world_;
  std::shared_ptr<UdpPort> port_;
  std::unique_ptr<link::MulticastJoiner> joiner_;
  std::vector<std::unique_ptr<link::MulticastReceiver>> joined_;
};

TEST_P(GroupJoinerTest, FramesComeBackOnlyWhereAFurtherMemberIsOnTheHost) {
  join({elsewhere()});
  EXPECT_FALSE(loops());
  join({elsewhere(), here()});
  EXPECT_TRUE(loops());
}

/// All groups leave by one socket.
TEST_P(GroupJoinerTest, OneGroupThatNeedsThemIsEnough) {
  join({here()});
  join({elsewhere()});
  EXPECT_TRUE(loops());
}

TEST_P(GroupJoinerTest, WhereMembersAreNotKnownAnyMayBeOnTheHost) {
  join({});
  EXPECT_TRUE(loops());
}

INSTANTIATE_TEST_SUITE_P(Families, GroupJoinerTest, testing::Values(Family::v4, Family::v6));

}  // namespace
}  // namespace cluster::os
