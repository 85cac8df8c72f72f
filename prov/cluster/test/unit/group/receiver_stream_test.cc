// One sender's stream at a member: order, duplicates, gaps, and what it reports when.
#include "group/receiver_stream.h"

#include <gtest/gtest.h>

#include "support/fake_environment.h"

namespace cluster::group {
namespace {

class Zero final : public Random {
 public:
  std::uint64_t next() override { return 0; }
};

class ReceiverStreamTest : public testing::Test {
 protected:
  bool receive(std::uint64_t sequence, bool report = false,
               ReceiverStream::Route route = ReceiverStream::Route::multicast) {
    const std::byte body[1]{static_cast<std::byte>(sequence)};
    return stream.receive(now, {sequence, sequence + 1, body, report, route, Duration::zero()}, 4);
  }
  /// The bodies that are delivered in order, as numbers.
  std::vector<int> take() {
    std::vector<int> taken;
    while (!stream.front().empty()) {
      taken.push_back(std::to_integer<int>(stream.front()[0]));
      stream.consume(1);
    }
    return taken;
  }

  Zero random;
  Time now{1s};
  SpareBodies pool{8};
  ReceiverStream stream{5, 10, random, pool};
};

TEST_F(ReceiverStreamTest, DeliversInOrderAndOnce) {
  EXPECT_TRUE(receive(11));
  EXPECT_EQ(take(), (std::vector<int>{}));
  EXPECT_TRUE(receive(10));
  EXPECT_EQ(take(), (std::vector<int>{10, 11}));
  EXPECT_FALSE(receive(10));
  EXPECT_FALSE(receive(11));
  EXPECT_FALSE(receive(9));
  EXPECT_EQ(take(), (std::vector<int>{}));
}

TEST_F(ReceiverStreamTest, RefusesWhatLiesBeyondTheWindow) {
  EXPECT_FALSE(receive(10 + kStreamWindow));
  EXPECT_TRUE(receive(10 + kStreamWindow - 1));
  EXPECT_EQ(stream.end(), 10 + kStreamWindow);
}

TEST_F(ReceiverStreamTest, WidensTheLowHalfOfASequence) {
  ReceiverStream late(5, 0x1FFFFFFFFu, random, pool);
  EXPECT_EQ(late.widen(0xFFFFFFFFu), 0x1FFFFFFFFu);
  EXPECT_EQ(late.widen(3), 0x200000003u);
  EXPECT_EQ(late.widen(0xFFFFFFF0u), 0x1FFFFFFF0u);
}

TEST_F(ReceiverStreamTest, ReportsGapsAndReportsThemAgain) {
  receive(10);
  receive(13);
  receive(15);
  std::array<ReceiverStream::Gap, kNakRanges> gaps;
  ASSERT_TRUE(stream.nak_due(now));
  ASSERT_EQ(stream.take_gaps(now, gaps), 2u);
  EXPECT_EQ(gaps[0].first, 11u);
  EXPECT_EQ(gaps[0].count, 2u);
  EXPECT_EQ(gaps[1].first, 14u);
  EXPECT_FALSE(stream.nak_due(now));
  EXPECT_TRUE(stream.nak_due(now + kNakRetry));
  receive(11);
  receive(12);
  receive(14);
  EXPECT_FALSE(stream.nak_due(now + 10s));
}

TEST_F(ReceiverStreamTest, ReportsWhenItIsAskedForOrHasMuch) {
  receive(10);
  EXPECT_FALSE(stream.status_due(now));
  EXPECT_TRUE(stream.status_due(now + kStatusDelay));
  receive(11, true);
  ASSERT_TRUE(stream.status_due(now));
  EXPECT_EQ(stream.status(now).arrived, 12u);
  EXPECT_EQ(stream.status(now).window_end, 10 + kStreamWindow);
  EXPECT_TRUE(stream.status(now).by_multicast);
  stream.status_sent();
  EXPECT_FALSE(stream.status_due(now + 1s));
  for (std::uint64_t i = 0; i < kFramesPerStatus; ++i) receive(12 + i);
  EXPECT_TRUE(stream.status_due(now));
}

TEST_F(ReceiverStreamTest, ReportsThatWhatWasHeldBackIsDelivered) {
  receive(10, true);
  stream.status_sent();
  EXPECT_FALSE(stream.status_due(now));
  take();
  ASSERT_TRUE(stream.status_due(now));
  EXPECT_EQ(stream.status(now).window_end, 11 + kStreamWindow);
}

TEST_F(ReceiverStreamTest, ACopySentToItAloneIsAnsweredByAReport) {
  receive(10, true);
  take();
  stream.status_sent();
  receive(10);
  EXPECT_FALSE(stream.status_due(now));
  receive(10, false, ReceiverStream::Route::unicast);
  EXPECT_TRUE(stream.status_due(now));
}

TEST_F(ReceiverStreamTest, AnEndThatCannotBeIsNotWaitedFor) {
  stream.asked(now, 10 + 2 * kStreamWindow, 4);
  EXPECT_EQ(stream.end(), 10u);
  stream.asked(now, 12, 4);
  EXPECT_TRUE(stream.nak_due(now + kNakBackoff * 4));
}

constexpr std::size_t kBodyMax = 1000;

TEST(SpareBodiesTest, MemoryOfLongBodiesIsUsedAgain) {
  SpareBodies pool(kBodyMax);
  SpareBodies::Body body = pool.take(kBodyMax);
  const std::byte* const memory = body.get();
  pool.give(std::move(body), kBodyMax);
  EXPECT_EQ(pool.take(kBodyMax - 1).get(), memory);
}

TEST(SpareBodiesTest, WhatIsShortOrTooLongForItIsFreed) {
  SpareBodies pool(kBodyMax);
  pool.give(pool.take(kBodyMax), kBodyMax);
  EXPECT_EQ(pool.spare(), 1u);
  pool.give(pool.take(kBodyMax / 2), kBodyMax / 2);
  pool.give(pool.take(kBodyMax + 1), kBodyMax + 1);
  EXPECT_EQ(pool.spare(), 1u);
}

TEST(SpareBodiesTest, KeepsNoMoreThanATurnMostlyBrings) {
  SpareBodies pool(kBodyMax);
  std::vector<SpareBodies::Body> bodies;
  for (std::size_t i = 0; i < 3 * SpareBodies::kSpareMax; ++i) bodies.push_back(pool.take(kBodyMax));
  for (SpareBodies::Body& body : bodies) pool.give(std::move(body), kBodyMax);
  EXPECT_EQ(pool.spare(), SpareBodies::kSpareMax);
}

TEST(SpareBodiesTest, AStreamGivesBackWhatItHasDelivered) {
  SpareBodies pool(kBodyMax);
  test::FakeRandom random;
  ReceiverStream stream(5, 0, random, pool);
  const std::byte body[kBodyMax]{};
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(stream.receive(Time{1s}, {i, i + 1, body, false, ReceiverStream::Route::multicast, {}}, 3));
  }
  stream.consume(kBodyMax);
  EXPECT_EQ(pool.spare(), 1u);
  stream.consume(kBodyMax / 2);
  EXPECT_EQ(pool.spare(), 1u) << "the rest of it is still to be delivered";
  stream.consume(kBodyMax / 2);
  EXPECT_EQ(pool.spare(), 2u);
}

}  // namespace
}  // namespace cluster::group
