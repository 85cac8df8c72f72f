#include "engine/flood_watch.h"

#include <gtest/gtest.h>

#include <array>

namespace cluster::engine {
namespace {

constexpr link::SessionMarks kMarks{0x17, 0x42};
constexpr std::uint32_t kMember = 0xABCD0017;
constexpr std::uint32_t kUnknown = 0xABCD0042;
constexpr Duration kTick = 1ms;

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
  /// `per_second` frames for `span`, of which the link lets through what it was asked to.
  void flood(std::uint32_t session, std::int64_t per_second, Duration span) {
    for (const Time end = now + span; now < end; now += kTick) {
      const bool aside = session != kUnknown && link.thinning.unmarked_aside;
      const unsigned shift = session == kUnknown ? link.thinning.unknown_shift : 0;
      if (aside && now >= look) {
        look = now + link::Thinning::kAsideInterval;
        aside_left = static_cast<std::int64_t>(link::Thinning::kAsideFrames);
      }
      left += per_second * kTick / 1s;
      for (; left >= 1 << shift; left -= 1 << shift) {
        if (aside && aside_left-- <= 0) continue;
        watch.note_session(now, session);
        ++passed;
      }
      watch.review(now);
    }
  }

  FilteredLink link;
  FloodWatch watch{&link, kMarks};
  Time now{1h};
  Time look{};
  std::int64_t aside_left = 0;  ///< of this look
  std::int64_t left = 0;
  std::int64_t passed = 0;
};

constexpr std::int64_t kPerSecond = FloodLevel::kPerInterval * (1s / FloodWatch::kInterval);

TEST_F(FloodWatchTest, AFloodWaitsAsideOnceItIsMoreThanACrowd) {
  flood(0, 50'000, 1s);
  EXPECT_LE(passed, FloodLevel::kBurst + 2 * kPerSecond);
  EXPECT_TRUE(link.thinning.unmarked_aside);
  const unsigned before = link.calls;
  flood(0, 50'000, 10s);
  EXPECT_EQ(link.calls, before) << "what is read aside is not taken for the end of the flood";
  EXPECT_EQ(link.thinning.unknown_shift, 0u) << "the other class is not meant";
  EXPECT_EQ(link.thinning.marks.member, kMarks.member);
}

TEST_F(FloodWatchTest, AFloodOfWhatNoCrowdSendsIsKnownSooner) {
  constexpr std::uint32_t kForeign = 0xABCD0099;
  flood(kForeign, 25'000, 50ms);
  EXPECT_TRUE(link.thinning.unmarked_aside);
  EXPECT_LE(passed, FloodLevel::kBurst / 8);
}

TEST_F(FloodWatchTest, AFewUselessFramesAreNone) {
  constexpr std::uint32_t kForeign = 0xABCD0099;
  flood(kForeign, kPerSecond * 3 / 4, 10s);
  EXPECT_EQ(link.calls, 0u);
}

TEST_F(FloodWatchTest, WhatIsUselessIsAFloodAsLongAsItIsTooMuch) {
  // Of such frames a part is read aside: as little as ends a flood comes of less than what begins one.
  constexpr std::int64_t kReadOf = kPerSecond / (1 << link::Thinning::kUselessShift);
  flood(0, 50'000, 1s);
  const unsigned before = link.calls;
  flood(0, kReadOf * 5 / 4, 5s);
  EXPECT_EQ(link.calls, before);
  EXPECT_TRUE(link.thinning.unmarked_aside);
}

TEST_F(FloodWatchTest, AFloodGoesOnAlsoForAnEngineThatComesSeldom) {
  flood(0, 50'000, 1s);
  const unsigned before = link.calls;
  for (int turn = 0; turn < 100; ++turn) {
    for (std::size_t i = 0; i < link::Thinning::kAsideFrames; ++i) watch.note_session(now, 0);
    watch.review(now += 10 * FloodWatch::kInterval);
  }
  EXPECT_EQ(link.calls, before) << "one look is all that it had";
  EXPECT_TRUE(link.thinning.unmarked_aside);
}

TEST_F(FloodWatchTest, WhatTheLinkDoesAlreadyItIsNotAskedForAgain) {
  flood(0, 50'000, 1s);
  const unsigned before = link.calls;
  for (int turn = 0; turn < 100; ++turn) {  // two looks in one interval, and then none
    for (std::size_t i = 0; i < 2 * link::Thinning::kAsideFrames * (turn % 2); ++i) watch.note_session(now, 0);
    watch.review(now += FloodWatch::kInterval);
  }
  EXPECT_EQ(link.calls, before);
}

TEST_F(FloodWatchTest, ACrowdIsServed) {
  for (int i = 0; i < FloodLevel::kBurst; ++i) watch.note_session(now, 0);
  now += 1s;
  watch.review(now);
  EXPECT_TRUE(link.thinning.none());
  EXPECT_EQ(watch.deadline(), kNever);
}

TEST_F(FloodWatchTest, TheLinkIsOpenAgainSoonAfterTheFloodAlsoIfNothingComes) {
  flood(0, 100'000, 2s);
  ASSERT_FALSE(link.thinning.none());
  for (int looks = 0; watch.deadline() != kNever; ++looks) {
    ASSERT_LT(looks, 12);
    watch.review(now = watch.deadline());
  }
  EXPECT_TRUE(link.thinning.none());
}

TEST_F(FloodWatchTest, FramesOfMembersAreNeverThinned) {
  flood(kMember, 1'000'000, 1s);
  EXPECT_TRUE(link.thinning.none());
  EXPECT_EQ(watch.deadline(), kNever);
}

TEST_F(FloodWatchTest, SessionsOfUnknownSourcesHaveALimitOfTheirOwn) {
  flood(kUnknown, 50'000, 2s);
  EXPECT_NE(link.thinning.unknown_shift, 0u);
  EXPECT_FALSE(link.thinning.unmarked_aside);
  passed = 0;
  flood(kUnknown, 50'000, 10s);
  EXPECT_LE(passed, 10 * kPerSecond);
  EXPECT_GE(passed, 10 * kPerSecond / 8) << "some get through";
}

TEST_F(FloodWatchTest, WhatIsNoFrameIsJudgedByTheSameByteAsInTheKernel) {
  std::array<std::byte, 13> bytes{};
  bytes[12] = std::byte{kMarks.member};
  for (int i = 0; i < 2 * FloodLevel::kBurst; ++i) watch.note_bytes(now, bytes);
  EXPECT_EQ(watch.deadline(), kNever);
  watch.review(now + 1s);
  EXPECT_TRUE(link.thinning.none());
  for (int i = 0; i < 2 * FloodLevel::kBurst; ++i) watch.note_bytes(now, ConstBytes(bytes).first(12));
  watch.review(now + 1s);
  EXPECT_TRUE(link.thinning.unmarked_aside);
}

TEST_F(FloodWatchTest, ATotalCountsOnce) {
  watch.note_total(now, 2 * FloodLevel::kBurst);
  watch.note_total(now, 2 * FloodLevel::kBurst);
  watch.review(now += 1s);
  EXPECT_TRUE(link.thinning.unmarked_aside);
  watch.note_total(now, 2 * FloodLevel::kBurst);
  for (int i = 0; i < 12; ++i) watch.review(now += 20ms);
  EXPECT_TRUE(link.thinning.none());
}

}  // namespace
}  // namespace cluster::engine
