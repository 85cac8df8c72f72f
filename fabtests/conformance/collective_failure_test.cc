// A member of a collective team dies, or calls something else than the others. Every pending operation ends with an
// error at all remaining members, in bounded time, and these can make another team.
#include <unistd.h>

#include "members.h"

namespace conformance {
namespace {

using std::chrono::seconds;

constexpr int kMembers = 5;

/// Members that wait for the dead one, and those that wait for others, in an operation of each kind.
void one_dies(Side& side, const std::function<ssize_t(Members&, std::vector<unsigned char>&, void*)>& post) {
  setenv("FI_CLUSTER_PEER_TIMEOUT", setting("CONFORMANCE_PEER_TIMEOUT", "2000").c_str(), 1);
  const int dead = side.count() - 2;
  Team team(side, with_collectives());
  Members members(team, team.peers);
  ASSERT_EQ(members.joined(), 0);
  barrier(members);
  team.meet();
  if (side.index() == dead) _exit(testing::Test::HasFailure() ? 1 : 0);
  std::vector<unsigned char> buffer(std::size_t{2} << 20);
  // The first may be over before the death is known; some later one cannot be.
  for (int i = 0;; ++i) {
    int mark = 0;
    ASSERT_LT(i, 100000) << "no operation of a team without one of its members fails";
    team.endpoint.must([&] { return post(members, buffer, &mark); });
    const auto outcome = team.endpoint.await(&mark, seconds(30));
    ASSERT_TRUE(outcome.has_value()) << "neither success nor failure in bounded time";
    if (!outcome->error) continue;
    EXPECT_GT(outcome->failure.err, 0);
    EXPECT_EQ(outcome->failure.flags, FI_COLLECTIVE);
    break;
  }
  int mark = 0;
  team.endpoint.must([&] { return fi_barrier(members.ep(), members.coll_addr(), &mark); });
  const auto later = team.endpoint.await(&mark, seconds(30));
  ASSERT_TRUE(later.has_value());
  EXPECT_TRUE(later->error) << "a team that has failed goes on failing";
  // The remaining members make another team.
  std::vector<fi_addr_t> left = team.peers;
  left.erase(left.begin() + dead);
  Members rest(team, left);
  ASSERT_EQ(rest.joined(), 0);
  every_operation(rest, 1000);
  // The dead one does not come to the meeting at the end of a test.
  for (int i = 0; i < side.count(); ++i) {
    if (i != dead && i != side.index()) side.send_blob(i, {1});
  }
  for (int i = 0; i < side.count(); ++i) {
    if (i != dead && i != side.index()) side.receive_blob(i, [&] { team.endpoint.progress(); });
  }
  _exit(testing::Test::HasFailure() ? 1 : 0);
}

/// Otherwise members would go on with bytes that were never sent.
SIDES_TEST(Collective, ATeamThatDisagreesOnALengthFails, 3) {
  Team team(side, with_collectives());
  Members members(team, team.peers);
  ASSERT_EQ(members.joined(), 0);
  team.meet();  // a team that fails while another side still joins fails its join
  std::vector<unsigned char> buffer(4096);
  const std::size_t length = side.index() == 2 ? 100 : 90;
  int mark = 0;
  team.endpoint.must([&] {
    return fi_broadcast(members.ep(), buffer.data(), length, nullptr, members.coll_addr(), members.address(0),
                        FI_UINT8, 0, &mark);
  });
  const auto first = team.endpoint.await(&mark, seconds(30));
  ASSERT_TRUE(first.has_value());
  if (side.index() == 2) {
    EXPECT_TRUE(first->error) << "it got fewer bytes than it said";
  }
  // The others may have been done before they heard of it, but no barrier of all is ever complete.
  int later_mark = 0;
  team.endpoint.must([&] { return fi_barrier(members.ep(), members.coll_addr(), &later_mark); });
  const auto later = team.endpoint.await(&later_mark, seconds(30));
  ASSERT_TRUE(later.has_value()) << "neither success nor failure in bounded time";
  EXPECT_TRUE(later->error);
}

SIDES_TEST(Collective, AllEndWithAnErrorWhenAMemberOfABarrierDies, kMembers) {
  one_dies(side, [](Members& members, std::vector<unsigned char>&, void* context) {
    return fi_barrier(members.ep(), members.coll_addr(), context);
  });
}

SIDES_TEST(Collective, AllEndWithAnErrorWhenAMemberOfABroadcastDies, kMembers) {
  one_dies(side, [](Members& members, std::vector<unsigned char>& buffer, void* context) {
    return fi_broadcast(members.ep(), buffer.data(), buffer.size(), nullptr, members.coll_addr(),
                        members.address(0), FI_UINT8, 0, context);
  });
}

SIDES_TEST(Collective, AllEndWithAnErrorWhenAMemberOfAnAllreduceDies, kMembers) {
  one_dies(side, [](Members& members, std::vector<unsigned char>& buffer, void* context) {
    return fi_allreduce(members.ep(), buffer.data(), buffer.size() / 2, nullptr,
                        buffer.data() + buffer.size() / 2, nullptr, members.coll_addr(), FI_UINT8, FI_MAX, 0,
                        context);
  });
}

}  // namespace
}  // namespace conformance
