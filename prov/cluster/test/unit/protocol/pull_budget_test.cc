// The pull budget: it adapts its size to delay, peers share it in turns, and stalled peers do not hold it.
#include "protocol/pull_budget.h"

#include <gtest/gtest.h>

#include <deque>

namespace cluster::protocol {
namespace {

constexpr std::size_t kMost = 1024 * 1024;
constexpr std::size_t kLeast = 48 * 1024;

struct PullBudgetTest : testing::Test {
  PullBudget budget{kMost, PullBudget::Size::found};
  std::deque<Channel> channels;
  std::deque<RecvRequest> receives;
  Time now{1s};

  RecvRequest& message_of(Channel& channel) {
    RecvRequest& receive = receives.emplace_back();
    receive.id = static_cast<std::uint32_t>(receives.size());
    receive.channel = &channel;
    return receive;
  }
  /// Pulls what may be pulled of one long message; all of it arrives `taken` later, `absence` of which
  /// the hosts took.
  void round(RecvRequest& receive, Duration taken, std::optional<Duration> host_delay = 0us) {
    while (budget.available() && budget.may_pull(receive)) budget.pulled(receive, budget.piece());
    budget.mark_limited();
    budget.on_transmit(now);
    now += taken;
    budget.arrived(receive, receive.pull.arrived, receive.pull.requested - receive.pull.arrived,
                   {now, host_delay});
  }
};

TEST_F(PullBudgetTest, DoublesWithoutQueueing) {
  RecvRequest& receive = message_of(channels.emplace_back());
  EXPECT_EQ(budget.piece(), 16u * 1024);
  for (int i = 0; i < 5; ++i) round(receive, 30us);
  EXPECT_EQ(budget.limit(), kMost);
  EXPECT_EQ(budget.piece(), kMost / 4);
  EXPECT_EQ(receive.pull.requested, receive.pull.arrived);
}

TEST_F(PullBudgetTest, ShrinksWithQueueingButNotBelowTheSmallestBuffer) {
  RecvRequest& receive = message_of(channels.emplace_back());
  for (int i = 0; i < 5; ++i) round(receive, 30us);
  round(receive, 330us);
  EXPECT_NEAR(static_cast<double>(budget.limit()), kMost * 230.0 / 330, kMost / 50.0);
  for (int i = 0; i < 20; ++i) round(receive, 5ms);
  EXPECT_EQ(budget.limit(), kLeast);
  round(receive, 30us);
  EXPECT_EQ(budget.limit(), kLeast + kLeast / 8) << "carefully at first";
  for (int i = 0; i < 10; ++i) round(receive, 30us);
  EXPECT_EQ(budget.limit(), kMost);
}

TEST_F(PullBudgetTest, HostDelayIsNotQueueing) {
  RecvRequest& receive = message_of(channels.emplace_back());
  for (int i = 0; i < 5; ++i) round(receive, 5030us, 5ms);
  EXPECT_EQ(budget.limit(), kMost);
  round(receive, 5330us, 5ms);
  EXPECT_NEAR(static_cast<double>(budget.limit()), kMost * 230.0 / 330, kMost / 50.0);
}

TEST_F(PullBudgetTest, UnknownHostDelayGivesNoSample) {
  RecvRequest& receive = message_of(channels.emplace_back());
  for (int i = 0; i < 5; ++i) round(receive, 330us);
  round(receive, 330us, 5ms);         // a clock was set: else this would be the base delay from now on
  round(receive, 5ms, std::nullopt);  // the delay is unknown
  EXPECT_EQ(budget.limit(), kMost);
  for (int i = 0; i < 5; ++i) round(receive, 330us);
  EXPECT_EQ(budget.limit(), kMost);
}

TEST_F(PullBudgetTest, DoesNotGrowWhileNoRequestWaits) {
  RecvRequest& receive = message_of(channels.emplace_back());
  const std::size_t before = budget.limit();
  for (int i = 0; i < 10; ++i) {
    budget.pulled(receive, 1000);
    budget.on_transmit(now);
    now += 30us;
    budget.arrived(receive, receive.pull.arrived, 1000, {now, 0us});
  }
  EXPECT_EQ(budget.limit(), before);
}

TEST_F(PullBudgetTest, AStalledPeerLendsItsShareUntilItMoves) {
  RecvRequest& silent = message_of(channels.emplace_back());
  RecvRequest& lively = message_of(channels.emplace_back());
  while (budget.available() && budget.may_pull(silent)) budget.pulled(silent, budget.piece());
  ASSERT_FALSE(budget.available());
  EXPECT_FALSE(budget.check_stalls(now)) << "it has just been requested";
  EXPECT_TRUE(budget.check_stalls(now + 3ms));
  EXPECT_TRUE(budget.available());
  EXPECT_FALSE(budget.may_pull(silent)) << "nothing more is requested from it";
  budget.pulled(lively, budget.piece());
  budget.arrived(lively, 0, 1000, {});
  EXPECT_FALSE(budget.check_stalls(now + 6ms)) << "what moves does not stall";
  budget.arrived(silent, 0, 1000, {});
  EXPECT_TRUE(budget.available()) << "crumbs buy nothing";
  budget.arrived(silent, 1000, 9000, {});
  EXPECT_FALSE(budget.available()) << "its share counts again";
  budget.arrived(silent, 10'000, silent.pull.requested - 10'000, {});
  budget.arrived(lively, 1000, lively.pull.requested - 1000, {});
  EXPECT_TRUE(budget.may_pull(silent));
  EXPECT_EQ(channels[0].pull.in_flight + channels[1].pull.in_flight, 0u);
}

TEST_F(PullBudgetTest, AStallHalvesTheBudgetOnceUnlessHostsAreSlow) {
  RecvRequest& first = message_of(channels.emplace_back());
  for (int i = 0; i < 5; ++i) round(first, 30us);
  ASSERT_EQ(budget.limit(), kMost);
  RecvRequest& silent = message_of(channels.emplace_back());
  budget.pulled(silent, budget.piece());
  budget.check_stalls(now);
  now += 3ms;
  EXPECT_TRUE(budget.check_stalls(now));
  EXPECT_EQ(budget.limit(), kMost / 2);
  now += 3ms;
  EXPECT_FALSE(budget.check_stalls(now)) << "it is the same stall";
  EXPECT_EQ(budget.limit(), kMost / 2);
  for (int i = 0; i < 5; ++i) round(first, 30us);
  EXPECT_EQ(budget.limit(), kMost) << "it grows again";
  round(first, 5ms, 4970us);
  RecvRequest& crowded = message_of(channels.emplace_back());
  budget.pulled(crowded, budget.piece());
  budget.check_stalls(now);
  now += 3ms;
  EXPECT_TRUE(budget.check_stalls(now)) << "its share is lent as well";
  EXPECT_EQ(budget.limit(), kMost) << "but it says nothing of the network";
}

TEST_F(PullBudgetTest, CrumbsDoNotHoldTheBudget) {
  RecvRequest& crumbling = message_of(channels.emplace_back());
  while (budget.available() && budget.may_pull(crumbling)) budget.pulled(crumbling, budget.piece());
  budget.check_stalls(now);
  bool lent = false;
  for (int look = 1; look <= 5; ++look) {
    budget.arrived(crumbling, crumbling.pull.arrived, 1, {});
    lent = budget.check_stalls(now += 3ms) || lent;
    EXPECT_TRUE(budget.available()) << look;
  }
  EXPECT_TRUE(lent);
}

TEST_F(PullBudgetTest, GivenUpBytesOfAStalledPeerCountOnce) {
  RecvRequest& lost = message_of(channels.emplace_back());
  budget.pulled(lost, budget.piece());
  budget.check_stalls(now);
  budget.check_stalls(now + 3ms);
  budget.given_up(channels[0], lost.pull.requested);
  RecvRequest& other = message_of(channels.emplace_back());
  std::size_t pulled = 0;
  while (budget.available() && budget.may_pull(other)) {
    pulled += budget.piece();
    budget.pulled(other, budget.piece());
  }
  EXPECT_EQ(pulled, budget.limit());
}

TEST_F(PullBudgetTest, AdjacentPullsAreJoined) {
  SendRequest request;
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(request.pulls.add({i * 10, i * 10 + 10}));
  EXPECT_EQ(request.pulls.count(), 1u);
  for (std::uint64_t i = 1; i < kPullsMax; ++i) ASSERT_TRUE(request.pulls.add({i * 10'000, i * 10'000 + 1}));
  EXPECT_FALSE(request.pulls.add({5, 6})) << "a correct peer does not request so many pieces";
}

}  // namespace
}  // namespace cluster::protocol
