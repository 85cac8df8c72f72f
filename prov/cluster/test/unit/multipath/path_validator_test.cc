// The state machine of path validation, by the rules of both kinds of path.
#include "multipath/path_validator.h"

#include <gtest/gtest.h>

namespace cluster::multipath {
namespace {

using Event = PathValidator::Event;

TEST(PathValidator, AnUnvalidatedPathIsChallengedAtGrowingIntervalsAndLoggedOnce) {
  PathValidator path(PathValidator::kIp, false);
  Time now{};
  Duration last{0};
  unsigned warnings = 0;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(path.challenge_due(now));
    warnings += path.on_challenge_sent(now) == Event::unanswered ? 1 : 0;
    Duration interval{0};
    while (!path.challenge_due(now + interval)) interval += 1ms;
    EXPECT_TRUE(i == 0 || interval == std::min(2 * last, PathValidator::kChallengeIntervalMax)) << i;
    last = interval;
    now += interval;
  }
  EXPECT_EQ(last, PathValidator::kChallengeIntervalMax);
  EXPECT_EQ(warnings, 1u);
  EXPECT_FALSE(path.proven());
  EXPECT_EQ(path.on_response(now, now), Event::works);
  EXPECT_TRUE(path.validated() && path.proven());
  EXPECT_FALSE(path.challenge_due(now + 1h));
}

TEST(PathValidator, AnIpPathFailsWithTheThirdUnansweredFrameInARow) {
  PathValidator path(PathValidator::kIp, true);
  EXPECT_FALSE(path.on_unanswered(Time(1ms)));
  EXPECT_FALSE(path.on_unanswered(Time(2ms)));
  EXPECT_EQ(path.on_acked(Time(2ms), Time(2ms)), Event::none);
  EXPECT_FALSE(path.on_unanswered(Time(3ms)));
  EXPECT_FALSE(path.on_unanswered(Time(4ms)));
  EXPECT_TRUE(path.on_unanswered(Time(5ms)));
  EXPECT_FALSE(path.validated());
  EXPECT_TRUE(path.challenge_due(Time(5ms))) << "at once";
  path.on_acked(Time(6ms), Time(4ms));
  EXPECT_FALSE(path.validated()) << "sent before the failure: proves nothing";
  EXPECT_EQ(path.on_response(Time(6ms), Time(6ms)), Event::none) << "so short a failure was not logged";
  EXPECT_TRUE(path.validated());
}

TEST(PathValidator, AnAnswerToWhatWasAskedBeforeTheFailureSaysNothingOfIt) {
  PathValidator path(PathValidator::kIp, true);
  EXPECT_FALSE(path.on_unanswered(Time(2ms)));
  EXPECT_FALSE(path.on_unanswered(Time(3ms)));
  path.on_response(Time(4ms), Time(1ms));
  EXPECT_TRUE(path.on_unanswered(Time(5ms)));
  path.on_response(Time(6ms), Time(4ms));
  EXPECT_FALSE(path.validated()) << "a host on the way may have kept it";
  path.on_response(Time(8ms), Time(7ms));
  EXPECT_TRUE(path.validated());
}

TEST(PathValidator, AFrameThatWasSentAfterTheFailureValidatesAgain) {
  PathValidator path(PathValidator::kIp, true);
  path.fail(Time(5ms));
  EXPECT_EQ(path.on_acked(Time(7ms), Time(6ms)), Event::none);
  EXPECT_TRUE(path.validated());
}

TEST(PathValidator, AnEthertypePathFailsWithTheFirstLoss) {
  PathValidator path(PathValidator::kEthertype, false);
  path.on_response(Time(1ms), Time(1ms));
  EXPECT_TRUE(path.on_unanswered(Time(2ms)));
  EXPECT_TRUE(path.proven() && !path.validated());
}

TEST(PathValidator, APathThatFailsSoonAfterItWasValidatedIsChallengedEverLater) {
  PathValidator path(PathValidator::kEthertype, false);
  Time now{};
  Duration last{0};
  for (int i = 0; i < 12; ++i) {
    Duration wait{0};
    while (!path.challenge_due(now + wait)) wait += 1ms;
    EXPECT_GE(wait, last);
    last = wait;
    now += wait;
    path.on_challenge_sent(now);
    path.on_response(now, now);
    now += 1ms;
    path.fail(now);
  }
  EXPECT_EQ(last, PathValidator::kChallengeIntervalMax);
  now += last;
  path.on_challenge_sent(now);
  path.on_response(now, now);
  now += PathValidator::kEthertype.trusted_after;
  path.fail(now);
  EXPECT_TRUE(path.challenge_due(now)) << "it had worked for long";
}

TEST(PathValidator, ASpuriousLossTakesTheFailureBackUntilAChallengeIsSent) {
  PathValidator path(PathValidator::kEthertype, false);
  path.on_spurious_loss();
  EXPECT_FALSE(path.validated()) << "it has never been validated";
  path.on_response(Time(1ms), Time(1ms));
  path.fail(Time(2s));
  path.on_spurious_loss();
  EXPECT_TRUE(path.validated());
  path.fail(Time(3s));
  path.on_challenge_sent(Time(3s));
  path.on_spurious_loss();
  EXPECT_FALSE(path.validated()) << "now the answer decides";
}

}  // namespace
}  // namespace cluster::multipath
