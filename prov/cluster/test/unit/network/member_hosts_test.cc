// Which hosts the process probe learns as hosts of members.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "network/network_transport.h"
#include "support/node.h"

namespace cluster::network {
namespace {

using test::kA;
using test::kB;
using transport::AddressTable;

class NotedProbe final : public link::ProcessProbe {
 public:
  bool answered_here() const override { return true; }
  Answer ask(const SocketAddress&) override { return Answer::none; }
  void end(const SocketAddress&) override {}
  void set_members(std::span<const SocketAddress> hosts) override {
    members.emplace(hosts.begin(), hosts.end());
  }

  std::optional<std::vector<SocketAddress>> members;
};

class MemberHostsTest : public testing::Test {
 protected:
  NotedProbe probe;
  MemberHosts hosts{&probe};
  AddressTable addresses;
};

TEST_F(MemberHostsTest, EachHostOfTheAddressVectorIsNamedOnce) {
  addresses.insert(kA);
  addresses.insert(kB);
  const AddressTable::Handle second = addresses.insert(kB.with_port(99));
  hosts.review(addresses);
  ASSERT_TRUE(probe.members);
  EXPECT_EQ(probe.members->size(), 2u);
  EXPECT_EQ(std::ranges::count(*probe.members, kB.with_port(0)), 1);
  probe.members.reset();
  hosts.review(addresses);
  EXPECT_FALSE(probe.members) << "nothing has changed";
  addresses.remove(second);
  hosts.review(addresses);
  EXPECT_TRUE(probe.members);
}

TEST_F(MemberHostsTest, NoneIsNamedOfTooMany) {
  for (std::uint32_t i = 0; i <= link::ProcessProbe::kHostsMax; ++i) {
    const std::byte ip[] = {std::byte{10}, static_cast<std::byte>(i >> 16), static_cast<std::byte>(i >> 8),
                            static_cast<std::byte>(i)};
    addresses.insert(SocketAddress::v4(ip, 1));
  }
  hosts.review(addresses);
  ASSERT_TRUE(probe.members);
  EXPECT_TRUE(probe.members->empty());
}

}  // namespace
}  // namespace cluster::network
