// What becomes of a collective group when one of its members dies: every operation under way ends with an error at
// all members that are left, in bounded time, and these make another group.
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
    ASSERT_LT(i, 100000) << "no operation of a group without one of its members fails";
    team.endpoint.must([&] { return post(members, buffer, &mark); });
    const auto outcome = team.endpoint.await(&mark, seconds(30));
    ASSERT_TRUE(outcome.has_value()) << "neither success nor failure in bounded time";
    if (!outcome->error) continue;
    EXPECT_GT(outcome->failure.err, 0);
    EXPECT_EQ(outcome->failure.flags, FI_COLLECTIVE);
    break;
  }
  int mark = 0;
  team.endpoint.must([&] { return fi_barrier(members.ep(), members.group(), &mark); });
  const auto later = team.endpoint.await(&mark, seconds(30));
  ASSERT_TRUE(later.has_value());
  EXPECT_TRUE(later->error) << "a group that has failed goes on failing";
  // Those that are left make another group.
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

SIDES_TEST(Collective, AllEndWithAnErrorWhenAMemberOfABarrierDies, kMembers) {
  one_dies(side, [](Members& members, std::vector<unsigned char>&, void* context) {
    return fi_barrier(members.ep(), members.group(), context);
  });
}

SIDES_TEST(Collective, AllEndWithAnErrorWhenAMemberOfABroadcastDies, kMembers) {
  one_dies(side, [](Members& members, std::vector<unsigned char>& buffer, void* context) {
    return fi_broadcast(members.ep(), buffer.data(), buffer.size(), nullptr, members.group(), members.address(0),
                        FI_UINT8, 0, context);
  });
}

SIDES_TEST(Collective, AllEndWithAnErrorWhenAMemberOfAnAllreduceDies, kMembers) {
  one_dies(side, [](Members& members, std::vector<unsigned char>& buffer, void* context) {
    return fi_allreduce(members.ep(), buffer.data(), buffer.size() / 2, nullptr, buffer.data() + buffer.size() / 2,
                        nullptr, members.group(), FI_UINT8, FI_MAX, 0, context);
  });
}

}  // namespace
}  // namespace conformance
