// Which way is in use, as questions are answered or not.
#include "relay/ways.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/fake_environment.h"

namespace cluster::relay {
namespace {

constexpr std::size_t kNear = 1, kFar = 2;

/// Rounds of questions on the direct way and through two relays. The far relay takes ten times as long.
class WaysTest : public ::testing::Test {
 protected:
  void round() {
    asked.clear();
    ways.begin_round(now);
    for (std::size_t way = 0; way < ways.size(); ++way) {
      if (!ways.asks(way)) continue;
      asked.push_back(way);
      ways.asked(now, way, ++question_);
      if (!works[way]) continue;
      const Duration took = way == kFar ? 10ms : 1ms;
      EXPECT_TRUE(ways.expects(way, question_));
      ways.on_answer(now + took, way, question_);
      EXPECT_FALSE(ways.expects(way, question_)) << "an answer counts once";
    }
  }
  /// Frames leave all the time for so long. Returns the way that is in use then.
  std::size_t after(Duration time) {
    for (const Time end = now + time; now < end; now += 1ms) {
      if (ways.round_due(now)) round();
    }
    return ways.used();
  }

  std::array<bool, 3> works{true, true, true};
  Ways ways{2};
  Time now = test::at(1s);
  std::vector<std::size_t> asked;

 private:
  std::uint64_t question_ = 0;
};

TEST_F(WaysTest, OnlyTheDirectWayIsAskedWhileItWorks) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(after(100ms), Ways::kDirect);
    EXPECT_EQ(asked, std::vector<std::size_t>{Ways::kDirect});
  }
}

TEST_F(WaysTest, TheNearestRelayTakesThePlaceOfTheDirectWay) {
  works[Ways::kDirect] = false;
  EXPECT_EQ(after(400ms), kNear);
  works[Ways::kDirect] = true;
  EXPECT_EQ(after(300ms), Ways::kDirect);
  works[Ways::kDirect] = false;
  EXPECT_EQ(after(1s), kNear);
}

TEST_F(WaysTest, ADeadRelayIsReplacedWithinASecond) {
  works[Ways::kDirect] = false;
  ASSERT_EQ(after(2s), kNear);
  works[kNear] = false;
  EXPECT_EQ(after(600ms), kFar);
  works[kNear] = true;
  EXPECT_EQ(after(600ms), kNear) << "it is much nearer";
}

TEST_F(WaysTest, OneLostQuestionChangesNothing) {
  works[Ways::kDirect] = false;
  ASSERT_EQ(after(2s), kNear);
  for (int i = 0; i < 10; ++i) {
    works[kNear] = false;
    while (!ways.waits()) after(1ms);
    works[kNear] = true;
    EXPECT_EQ(after(500ms), kNear);
  }
}

TEST_F(WaysTest, ALateAnswerCounts) {
  ways.begin_round(now);
  ways.asked(now, Ways::kDirect, 77);
  ways.begin_round(now + 100ms);
  ways.asked(now + 100ms, Ways::kDirect, 78);
  ASSERT_TRUE(ways.expects(Ways::kDirect, 77));
  ways.on_answer(now + 150ms, Ways::kDirect, 77);
  EXPECT_TRUE(ways.works(Ways::kDirect));
  EXPECT_FALSE(ways.round_due(now + 400ms));
}

TEST_F(WaysTest, AnAnswerBelongsToItsWay) {
  ways.begin_round(now);
  ways.asked(now, Ways::kDirect, 77);
  EXPECT_FALSE(ways.expects(kNear, 77));
  EXPECT_FALSE(ways.expects(Ways::kDirect, 0));
  EXPECT_FALSE(ways.expects(3, 77));
}

TEST_F(WaysTest, NobodyIsAskedOftenForLongInVain) {
  works = {false, false, false};
  after(3s);
  std::size_t rounds = 0;
  for (int i = 0; i < 100; ++i, now += 100ms) {
    if (!ways.round_due(now)) continue;
    round();
    ++rounds;
  }
  EXPECT_LE(rounds, 11u);
}

TEST_F(WaysTest, UntilAWayWorksFramesGoBackTheWayTheyCame) {
  ways.heard(kFar);
  EXPECT_EQ(ways.used(), kFar);
  works[kFar] = false;
  EXPECT_EQ(after(300ms), Ways::kDirect);
  ways.heard(kFar);
  EXPECT_EQ(ways.used(), Ways::kDirect) << "a frame that anybody could have sent replaces no way that works";
}

}  // namespace
}  // namespace cluster::relay
