#include "network/flood_watch.h"

#include <gtest/gtest.h>

namespace cluster::network {
namespace {

constexpr std::uint8_t kMark = 0x17;
constexpr std::uint32_t kMember = 0xABCD0017;
constexpr std::uint32_t kForeign = 0xABCD0099;
constexpr Duration kTick = 1ms;
constexpr auto kAsideFrames = static_cast<std::int64_t>(link::Thinning::kAsideFrames);

class FilteredLink final : public link::Link {
 public:
  const char* name() const override { return "filtered"; }
  std::size_t frame_max() const override { return 1472; }
  std::size_t send_burst(std::span<const link::OutFrame> frames) override { return frames.size(); }
  std::size_t receive_burst(std::span<link::InFrame>) override { return 0; }
  std::size_t read_path_errors(std::span<link::PathError>) override { return 0; }
  void thin(const link::Thinning& wanted) override {
    thinning = wanted;
    ++calls;
  }

  link::Thinning thinning;
  unsigned calls = 0;
};

class FloodWatchTest : public testing::Test {
 protected:
  /// `per_second` frames for `span`; the link passes as many as it was told.
  void flood(std::uint32_t session, std::int64_t per_second, Duration span) {
    for (const Time end = now + span; now < end; now += kTick) {
      const bool aside = link.thinning.on && static_cast<std::uint8_t>(session) != link.thinning.mark;
      if (aside && now >= look) {
        look = now + link::Thinning::kAsideInterval;
        aside_left = kAsideFrames;
      }
      for (left += per_second * kTick / 1s; left > 0; --left) {
        if (aside && aside_left-- <= 0) continue;
        watch.note_session(now, session);
        ++passed;
      }
      watch.review(now);
    }
  }

  FilteredLink link;
  FloodWatch watch{&link, kMark};
  Time now{1h};
  Time look{};
  std::int64_t aside_left = 0;  ///< of this look
  std::int64_t left = 0;
  std::int64_t passed = 0;
};

constexpr std::int64_t kPerSecond = FloodWatch::kPerInterval * (1s / FloodWatch::kInterval);

TEST_F(FloodWatchTest, AFloodWaitsAsideOnceItIsMoreThanACrowd) {
  flood(0, 50'000, 1s);
  EXPECT_LE(passed, FloodWatch::kBurst + 2 * kPerSecond);
  EXPECT_TRUE(link.thinning.on);
  EXPECT_EQ(link.thinning.mark, kMark);
  flood(0, 50'000, 10s);
  EXPECT_EQ(link.calls, 1u) << "what is read aside is not taken for the end of the flood";
}

TEST_F(FloodWatchTest, AFloodOfWhatNoCrowdSendsIsKnownSooner) {
  flood(kForeign, 25'000, 50ms);
  EXPECT_TRUE(link.thinning.on);
  EXPECT_LE(passed, FloodWatch::kBurst / 8);
  FloodWatch other(&link, kMark);
  link.thinning.on = false;
  for (int i = 0; i < FloodWatch::kBurst / 8; ++i) other.note_nonsense(now);
  other.review(now += FloodWatch::kInterval);
  EXPECT_TRUE(link.thinning.on);
}

TEST_F(FloodWatchTest, AFewUselessFramesAreNone) {
  flood(kForeign, kPerSecond * 3 / 4, 10s);
  EXPECT_EQ(link.calls, 0u);
}

TEST_F(FloodWatchTest, AFloodThatHasBecomeSmallerGoesOn) {
  flood(0, 50'000, 1s);
  flood(0, kPerSecond / 2, 5s);
  EXPECT_EQ(link.calls, 1u) << "more than a quarter of what begins one";
}

TEST_F(FloodWatchTest, AFloodGoesOnAlsoForAnEngineThatComesSeldom) {
  flood(0, 50'000, 1s);
  for (int turn = 0; turn < 100; ++turn) {
    for (std::int64_t i = 0; i < kAsideFrames; ++i) watch.note_session(now, 0);
    watch.review(now += 10 * FloodWatch::kInterval);
  }
  EXPECT_EQ(link.calls, 1u) << "one look is all that it had";
}

TEST_F(FloodWatchTest, WhatTheLinkDoesAlreadyItIsNotAskedForAgain) {
  flood(0, 50'000, 1s);
  for (int turn = 0; turn < 100; ++turn) {  // two looks in one interval, and then none
    for (std::int64_t i = 0; i < 2 * kAsideFrames * (turn % 2); ++i) watch.note_session(now, 0);
    watch.review(now += FloodWatch::kInterval);
  }
  EXPECT_EQ(link.calls, 1u);
}

/// The link begins to put frames aside now, so the first look may fall into the second interval.
TEST_F(FloodWatchTest, AFloodOutlivesAnIntervalWithoutALook) {
  for (int i = 0; i < FloodWatch::kBurst / 8; ++i) watch.note_session(now, kForeign);
  watch.review(now += FloodWatch::kInterval);
  ASSERT_TRUE(link.thinning.on);
  watch.review(now += FloodWatch::kInterval);
  EXPECT_TRUE(link.thinning.on);
}

TEST_F(FloodWatchTest, ACrowdIsServed) {
  for (int i = 0; i < FloodWatch::kBurst; ++i) watch.note_session(now, 0);
  now += 1s;
  watch.review(now);
  EXPECT_EQ(link.calls, 0u);
  EXPECT_EQ(watch.deadline(), kNever);
}

TEST_F(FloodWatchTest, TheLinkIsOpenAgainAfterTheFloodAlsoIfNothingComes) {
  flood(0, 100'000, 2s);
  ASSERT_TRUE(link.thinning.on);
  for (int looks = 0; watch.deadline() != kNever; ++looks) {
    ASSERT_LT(looks, 12);
    watch.review(now = watch.deadline());
  }
  EXPECT_FALSE(link.thinning.on);
}

/// A flood that was over for an interval is one again at once, not after another crowd.
TEST_F(FloodWatchTest, AFloodThatPausesIsSoonKnownAgain) {
  flood(0, 50'000, 1s);
  flood(0, 0, 100ms);
  ASSERT_FALSE(link.thinning.on);
  passed = 0;
  flood(0, 50'000, 20ms);
  EXPECT_TRUE(link.thinning.on);
  EXPECT_LE(passed, 1000);
}

/// As many frames come from a host that has found the mark: they pass, and all others wait.
TEST_F(FloodWatchTest, FramesWithTheMarkCountAsWell) {
  flood(kMember, 50'000, 1s);
  EXPECT_TRUE(link.thinning.on);
  EXPECT_EQ(passed, 50'000);
}

TEST_F(FloodWatchTest, ATotalCountsOnce) {
  watch.note_total(now, 2 * FloodWatch::kBurst);
  watch.note_total(now, 2 * FloodWatch::kBurst);
  watch.review(now += 1s);
  EXPECT_TRUE(link.thinning.on);
  watch.note_total(now, 2 * FloodWatch::kBurst);
  for (int i = 0; i < 20; ++i) watch.review(now += 20ms);
  EXPECT_FALSE(link.thinning.on);
}

}  // namespace
}  // namespace cluster::network
