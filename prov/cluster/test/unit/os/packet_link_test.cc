#include "os/packet_link.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/link_station.h"
#include "conformance/two_hosts.h"

namespace cluster::os {
namespace {

using Family = SocketAddress::Family;

class PacketLinkRefusal : public ::testing::Test {
 protected:
  PacketLinkRefusal() {
    int error = 0;
    port_ = UdpPort::open(test::loopback(Family::v4), error);
    interface_.name = "rail0";
    interface_.index = 1;
    interface_.mtu = 1500;
    interface_.up = interface_.running = interface_.has_ethernet = true;
    interface_.addresses = {test::loopback(Family::v4)};
  }
  std::string reason() {
    std::string words;
    EXPECT_FALSE(open_packet_link(port_, interface_, {}, world_.environment, words));
    return words;
  }

  test::World world_;
  std::shared_ptr<UdpPort> port_;
  Interface interface_;
};

TEST_F(PacketLinkRefusal, NamesCauseAndCure) {
  interface_.loopback = true;
  EXPECT_NE(reason().find("udp link"), std::string::npos);
  interface_.loopback = false;
  interface_.has_ethernet = false;
  EXPECT_NE(reason().find("not an Ethernet interface"), std::string::npos);
  interface_.has_ethernet = true;
  interface_.up = false;
  EXPECT_NE(reason().find("ip link set rail0 up"), std::string::npos);
  interface_.up = true;
  interface_.addresses.clear();
  EXPECT_NE(reason().find("127.0.0.1 does not belong"), std::string::npos);
}

TEST_F(PacketLinkRefusal, WithoutThePrivilege) {
  const pid_t child = fork();
  if (child == 0) {
    const bool dropped = getuid() != 0 || setresuid(65534, 65534, 65534) == 0;
    _exit(dropped && reason().find("CAP_NET_RAW") != std::string::npos ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(PacketLinkRefusal, LeavesThePortUsable) {
  interface_.index = 1 << 30;  // names no interface; with privilege the refusal comes from bind
  EXPECT_FALSE(reason().empty());
  EXPECT_EQ(port_.use_count(), 1) << "nothing was kept";
}

}  // namespace
}  // namespace cluster::os
