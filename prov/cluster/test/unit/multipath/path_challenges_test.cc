#include <gtest/gtest.h>

#include "multipath/path_validator.h"
#include "support/fake_environment.h"

namespace cluster::multipath {
namespace {

struct PathChallengesTest : testing::Test {
  static SocketAddress place(int last) {
    const std::byte ip[] = {std::byte{10}, std::byte{0}, std::byte{0}, static_cast<std::byte>(last)};
    return SocketAddress::v4(ip, 9228);
  }

  test::FakeRandom random;
  PathChallenges challenges{random};
};

TEST_F(PathChallengesTest, AnAnswerCountsFromWhereTheQuestionWentAndOnce) {
  const std::uint64_t data = challenges.draw(Time{}, place(1));
  EXPECT_FALSE(challenges.answered(data, place(2)));
  EXPECT_FALSE(challenges.answered(data + 1, place(1)));
  EXPECT_TRUE(challenges.answered(data, place(1)));
  EXPECT_FALSE(challenges.answered(data, place(1)));
}

TEST_F(PathChallengesTest, OneIsKnownByItsFirstBitsAndItsAddress) {
  const auto bits = static_cast<std::uint32_t>(challenges.draw(Time{}, place(1)));
  EXPECT_TRUE(challenges.sent(bits, place(1)));
  EXPECT_FALSE(challenges.sent(bits, place(2)));
  EXPECT_FALSE(challenges.sent(bits + 1, place(1)));
}

TEST_F(PathChallengesTest, EachCarriesBitsOfItsOwnAndLateAnswersCount) {
  const std::uint64_t first = challenges.draw(Time{}, place(1));
  const std::uint64_t second = challenges.draw(Time{}, place(1));
  EXPECT_NE(first, second);
  EXPECT_TRUE(challenges.answered(second, place(1)));
  EXPECT_TRUE(challenges.answered(first, place(1)));
}

TEST_F(PathChallengesTest, AnAnswerTellsWhenItWasAskedFor) {
  const std::uint64_t first = challenges.draw(Time(1ms), place(1));
  const std::uint64_t second = challenges.draw(Time(2ms), place(1));
  EXPECT_EQ(challenges.answered(second, place(1))->at, Time(2ms));
  EXPECT_EQ(challenges.answered(first, place(1))->at, Time(1ms));
}

TEST_F(PathChallengesTest, TheMemoryIsBounded) {
  const std::uint64_t first = challenges.draw(Time{}, place(1));
  std::uint64_t last = 0;
  for (int i = 0; i < 1000; ++i) last = challenges.draw(Time{}, place(1));
  EXPECT_FALSE(challenges.answered(first, place(1)));
  EXPECT_TRUE(challenges.answered(last, place(1)));
  EXPECT_LE(challenges.footprint(), 4096u);
}

}  // namespace
}  // namespace cluster::multipath
