// How the pace of a stream finds the rate of the slowest path to a listener: a port that passes a frame each
// `port_`, with a buffer of 64 KB for frames of 1,500 bytes.
#include "group/pace.h"

#include <gtest/gtest.h>

#include <utility>

namespace cluster::group {
namespace {

class PaceTest : public testing::Test {
 protected:
  static constexpr std::int64_t kPortFrames = 43;
  static constexpr Duration kEmptyWay = 50us;  ///< there and back

  /// Sends `frames` through the port, with a report for each 32; returns how many were lost.
  std::size_t send(std::uint64_t frames) {
    std::size_t lost = 0;
    for (const std::uint64_t end = sent_ + frames; sent_ < end;) {
      now_ = std::max(now_, pace_.ready());
      const std::size_t burst = std::min<std::size_t>(pace_.allowance(now_), end - sent_);
      EXPECT_GT(burst, 0u);
      if (burst == 0) return lost;
      pace_.on_sent(now_, burst);
      for (std::size_t i = 0; i < burst; ++i) lost += pass() ? 0 : 1;
    }
    now_ = std::max(now_, free_at_);
    return lost;
  }
  bool pass() {
    const bool bad = bad_cable_ != 0 && sent_ % bad_cable_ == 0;
    const bool full = (free_at_ - now_) / port_ >= kPortFrames;
    if (!full) free_at_ = std::max(free_at_, now_) + port_;
    if (full || bad) ++missed_;
    if (++sent_ % 32 == 0) {
      pace_.on_round_trip(now_, kEmptyWay + std::max(free_at_ - now_, Duration::zero()));
      if (pace_.train_over(sent_)) pace_.judge(sent_, sent_, std::exchange(missed_, 0));
    }
    return !full;
  }

  Pace pace_;
  Duration port_ = 12us;
  std::uint64_t bad_cable_ = 0;  ///< one in so many frames is lost
  Time now_{1s};
  Time free_at_{};
  std::uint64_t sent_ = 0;
  std::uint64_t missed_ = 0;
};

TEST_F(PaceTest, FindsThePortAndStaysThere) {
  send(2000);
  for (int message = 0; message < 20; ++message) {
    EXPECT_LE(send(2000), 50u) << "one in 40";
    EXPECT_GT(pace_.interval(), port_ * 8 / 10);
    EXPECT_LT(pace_.interval(), port_ * 13 / 10);
  }
}

TEST_F(PaceTest, FollowsAPortThatBecomesSlowerAndFasterAgain) {
  send(4000);
  port_ = 100us;
  send(4000);
  EXPECT_GT(pace_.interval(), port_ * 8 / 10);
  port_ = 12us;
  send(20000);
  EXPECT_LT(pace_.interval(), port_ * 12 / 10);
}

TEST_F(PaceTest, MakesUpForFewBurstsOnly) {
  send(2000);
  now_ += 1s;
  EXPECT_EQ(pace_.allowance(now_), Pace::kBurstsLate * pace_.burst());
  pace_.on_sent(now_, Pace::kBurstsLate * pace_.burst());
  EXPECT_EQ(pace_.allowance(now_), 0u);
  EXPECT_GT(pace_.ready(), now_);
}

TEST_F(PaceTest, ABadCableDoesNotSlowItDown) {
  bad_cable_ = 100;
  send(20000);
  EXPECT_LT(pace_.interval(), port_ * 12 / 10);
}

/// Flows send less while a queue stands; a stream that did not would take the port from them.
TEST_F(PaceTest, GivesWayWhereOthersFillAQueueButNotBelowHalf) {
  send(20000);
  const Duration alone = pace_.interval();
  std::uint64_t reached = sent_;
  for (int train = 0; train < 100; ++train) {
    pace_.on_round_trip(now_, kEmptyWay + 2 * Pace::kQueue);
    reached += Pace::kTrain;
    pace_.judge(reached, reached, 1);
  }
  EXPECT_GT(pace_.interval(), alone * 3 / 2);
  EXPECT_LT(pace_.interval(), alone * 5 / 2);
}

/// Reports show what a full port dropped for as long as earlier frames still arrive.
TEST_F(PaceTest, AnswersOneOverflowOnce) {
  send(20000);
  const Duration before = pace_.interval();
  const std::uint64_t under_way = sent_ + 4 * Pace::kTrain;
  pace_.judge(sent_ += Pace::kTrain, under_way, Pace::kTrain);
  EXPECT_EQ(pace_.counts_from(), under_way);
  EXPECT_GT(pace_.interval(), before * 3 / 2);
  const Duration after = pace_.interval();
  while (sent_ < under_way) pace_.judge(sent_ += Pace::kTrain, under_way, 0);
  EXPECT_EQ(pace_.interval(), after);
}

TEST_F(PaceTest, DoesNotGoFasterThanItsMessagesNeed) {
  std::uint64_t reached = 0;
  for (; reached < 100 * Pace::kTrain; now_ += 1ms) {
    pace_.on_sent(now_, 1);
    if (pace_.train_over(++reached)) pace_.judge(reached, reached, 0);
  }
  EXPECT_EQ(pace_.interval(), Pace::kFirst);
}

TEST_F(PaceTest, SilenceSlowsItDownAndSoonItIsAsFastAsBefore) {
  send(20000);
  const Duration before = pace_.interval();
  pace_.on_silence();
  EXPECT_EQ(pace_.interval(), before * 2);
  for (int i = 0; i < 40; ++i) pace_.on_silence();
  EXPECT_EQ(pace_.interval(), Pace::kLongest);
  send(2000);
  EXPECT_LT(pace_.interval(), before * 12 / 10);
}

}  // namespace
}  // namespace cluster::group
