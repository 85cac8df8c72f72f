// What fi_join returns and does not return, and the events of an object that is closed.
#include <rdma/fi_collective.h>

#include "support/failing_memory.h"
#include "unit/api/api_world.h"

namespace cluster::api::test {
namespace {

/// An endpoint whose address vector contains only the endpoint itself.
class McTest : public ApiTest {
 protected:
  McTest() {
    info.info.caps |= FI_COLLECTIVE | FI_MULTICAST;
    platform.multicast = true;
    EXPECT_EQ(fi_eq_open(fabric, &eq_attr, &eq, this), 0);
    node.endpoint = open_endpoint();
    node.av = open_av();
    node.sends = open_cq();
    node.receives = open_cq();
    EXPECT_EQ(fi_ep_bind(node.endpoint, &eq->fid, 0), 0);
    EXPECT_EQ(fi_ep_bind(node.endpoint, &node.av->fid, 0), 0);
    EXPECT_EQ(fi_ep_bind(node.endpoint, &node.sends->fid, FI_TRANSMIT), 0);
    EXPECT_EQ(fi_ep_bind(node.endpoint, &node.receives->fid, FI_RECV), 0);
    EXPECT_EQ(fi_enable(node.endpoint), 0);
    node.insert(node);
  }
  ~McTest() override {
    node.close();
    EXPECT_EQ(fi_close(&eq->fid), 0);
  }

  fid_av_set* open_set() {
    fi_av_set_attr attributes{};
    attributes.flags = FI_UNIVERSE;
    fid_av_set* set = nullptr;
    EXPECT_EQ(fi_av_set(node.av, &attributes, &set, this), 0);
    return set;
  }
  int join_team(fid_av_set* set, fid_mc** team) {
    return fi_join_collective(node.endpoint, FI_ADDR_NOTAVAIL, set, 0, team, this);
  }
  /// Returns the result of a read of the event queue; looks for a while if the queue is empty.
  ssize_t event() {
    ssize_t result = -FI_EAGAIN;
    for (int i = 0; i < 400'000 && result == -FI_EAGAIN; ++i) {
      fi_cq_read(node.sends, nullptr, 0);
      std::uint32_t kind = 0;
      fi_eq_entry entry{};
      result = fi_eq_read(eq, &kind, &entry, sizeof entry, FI_PEEK);
    }
    return result;
  }

  fi_eq_attr eq_attr{};
  fid_eq* eq = nullptr;
  Node node;
};

TEST_F(McTest, ATeamThatClosesTakesItsEventAlong) {
  fid_av_set* const set = open_set();
  fid_mc* team = nullptr;
  ASSERT_EQ(join_team(set, &team), 0);
  EXPECT_EQ(event(), ssize_t{sizeof(fi_eq_entry)});
  EXPECT_EQ(fi_close(&team->fid), 0);
  std::uint32_t kind = 0;
  fi_eq_entry entry{};
  EXPECT_EQ(fi_eq_read(eq, &kind, &entry, sizeof entry, 0), -FI_EAGAIN) << "it would name the closed team";
  EXPECT_EQ(fi_close(&set->fid), 0);
}

TEST_F(McTest, AGroupThatClosesTakesItsEventAlong) {
  const sockaddr_in address = raw(
      SocketAddress::v4(std::array{std::byte{239}, std::byte{1}, std::byte{2}, std::byte{3}}.data(), 7001));
  fid_mc* group = nullptr;
  ASSERT_EQ(fi_join(node.endpoint, &address, 0, &group, this), 0);
  EXPECT_EQ(event(), ssize_t{sizeof(fi_eq_entry)});
  EXPECT_EQ(fi_close(&group->fid), 0);
  std::uint32_t kind = 0;
  fi_eq_entry entry{};
  EXPECT_EQ(fi_eq_read(eq, &kind, &entry, sizeof entry, 0), -FI_EAGAIN) << "it would name the closed group";
}

TEST_F(McTest, AnEndpointThatClosesTakesTheLossesOfItsPeersAlong) {
  const sockaddr_in nobody = raw(host(99, 9000));
  fi_addr_t handle = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(fi_av_insert(node.av, &nobody, 1, &handle, 0, nullptr), 1);
  int word = 7;
  ASSERT_EQ(fi_send(node.endpoint, &word, sizeof word, nullptr, handle, &word), 0);
  EXPECT_GT(event(), 0);
  EXPECT_EQ(fi_close(&node.endpoint->fid), 0);
  node.endpoint = open_endpoint();
  std::uint32_t kind = 0;
  fi_eq_entry entry{};
  EXPECT_EQ(fi_eq_read(eq, &kind, &entry, sizeof entry, 0), -FI_EAGAIN)
      << "it would name the closed endpoint";
}

TEST_F(McTest, AJoinThatFindsNoMemoryReturnsNoTeam) {
  fid_av_set* const set = open_set();
  fid_mc* team = nullptr;
  int result = -FI_ENOMEM;
  std::size_t refused = 0;
  for (std::size_t allowed = 0; result != 0; ++allowed) {
    {
      const cluster::test::FailingMemory memory(allowed, 1);
      result = join_team(set, &team);
    }
    if (result == 0) break;
    EXPECT_EQ(result, -FI_ENOMEM);
    EXPECT_EQ(team, nullptr);
    team = nullptr;
    ++refused;
  }
  EXPECT_GT(refused, 2u);
  EXPECT_EQ(fi_close(&team->fid), 0);
  EXPECT_EQ(fi_close(&set->fid), 0);
}

TEST_F(McTest, ATeamHasNoMoreMembersThanTheLimit) {
  constexpr std::size_t kLimit = 65536;  // fi_query_collective reports it
  std::vector<sockaddr_in> addresses(kLimit, node.name());
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    addresses[i].sin_addr.s_addr = htonl(0x0a400000u + static_cast<std::uint32_t>(i / 16384));
    addresses[i].sin_port = htons(static_cast<std::uint16_t>(1024 + i % 16384));
  }
  std::vector<fi_addr_t> handles(kLimit);
  ASSERT_EQ(fi_av_insert(node.av, addresses.data(), kLimit, handles.data(), 0, nullptr), int{kLimit});
  fid_av_set* const set = open_set();
  fid_mc* team = nullptr;
  EXPECT_EQ(join_team(set, &team), -FI_EINVAL);
  if (team != nullptr) {
    EXPECT_EQ(fi_close(&team->fid), 0);
  }
  EXPECT_EQ(fi_close(&set->fid), 0);
}

TEST_F(McTest, ASetNeedsTheBytesOfItsKey) {
  fi_av_set_attr attributes{};
  attributes.flags = FI_UNIVERSE;
  attributes.comm_key_size = 8;
  fid_av_set* set = nullptr;
  EXPECT_EQ(fi_av_set(node.av, &attributes, &set, this), -FI_EINVAL);
}

}  // namespace
}  // namespace cluster::api::test
