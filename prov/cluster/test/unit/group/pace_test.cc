// How the pace of a stream finds the rate of the slowest way to a listener: a port that passes a frame each `port_`, and has
// memory for 64 KB of 1,500 bytes.
#include "group/pace.h"

#include <gtest/gtest.h>

namespace cluster::group {
namespace {

class PaceTest : public testing::Test {
 protected:
  static constexpr std::int64_t kPortFrames = 43;

  /// Sends `frames` through the port, with a report for each 32; returns how many were lost.
  std::size_t send(std::uint64_t frames) {
    std::size_t lost = 0;
    for (const std::uint64_t end = sent_ + frames; sent_ < end;) {
      now_ = std::max(now_, pace_.ready());
      const std::size_t burst = std::min<std::size_t>(pace_.allowance(now_), end - sent_);
      EXPECT_GT(burst, 0u);
      if (burst == 0) return lost;
      pace_.on_sent(now_, burst);
      for (std::size_t i = 0; i < burst; ++i) {
        if ((free_at_ - now_) / port_ >= kPortFrames) {
          pace_.on_lost();
          ++lost;
        } else {
          free_at_ = std::max(free_at_, now_) + port_;
        }
        if (++sent_ % 32 == 0) pace_.on_arrival(free_at_, sent_);
      }
    }
    now_ = std::max(now_, free_at_);
    pace_.end_train();
    return lost;
  }

  Pace pace_;
  Duration port_ = 12us;
  Time now_{1s};
  Time free_at_{};
  std::uint64_t sent_ = 0;
};

TEST_F(PaceTest, FindsThePortAndStaysThere) {
  send(2000);
  for (int message = 0; message < 20; ++message) {
    EXPECT_LE(send(2000), 50u) << "one in 40";
    EXPECT_GT(pace_.interval(), port_ * 8 / 10);
    EXPECT_LT(pace_.interval(), port_ * 12 / 10);
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
  EXPECT_EQ(pace_.allowance(now_), Pace::kBurstsLate * Pace::kBurst);
  pace_.on_sent(now_, Pace::kBurstsLate * Pace::kBurst);
  EXPECT_EQ(pace_.allowance(now_), 0u);
  EXPECT_GT(pace_.ready(), now_);
}

TEST_F(PaceTest, AFewLossesWithoutAQueueDoNotSlowItDown) {
  send(4000);
  const Duration before = pace_.interval();
  pace_.on_lost();
  send(4000);
  EXPECT_LT(pace_.interval(), before * 12 / 10);
}

TEST_F(PaceTest, SilenceSlowsItDown) {
  send(4000);
  const Duration before = pace_.interval();
  pace_.on_silence();
  EXPECT_EQ(pace_.interval(), before * 2);
  for (int i = 0; i < 40; ++i) pace_.on_silence();
  EXPECT_EQ(pace_.interval(), Pace::kLongest);
}

}  // namespace
}  // namespace cluster::group
