#include "network/flood_watch.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace cluster::network {
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
  /// `per_second` frames for `span`; the link passes as many as it was told.
  void flood(std::uint32_t session, std::int64_t per_second, Duration span) {
    for (const Time end = now + span; now < end; now += kTick) {
      const bool aside = session != kUnknown && session != kMember && link.thinning.unmarked_aside;
      const unsigned shift = session == kUnknown  ? link.thinning.unknown_shift
                             : session == kMember ? link.thinning.member_shift
                                                  : 0;
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
  std::vector<std::uint32_t> members;
  FloodWatch watch{&link, kMarks, [this] { return members; }};
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
  // Only a part of such frames is read aside, so the count that ends a flood stands for fewer frames than
  // begin one.
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
    for (std::size_t i = 0; i < 2 * link::Thinning::kAsideFrames * (turn % 2); ++i)
      watch.note_session(now, 0);
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

TEST_F(FloodWatchTest, FramesWithTheMarkOfMembersAreThinnedAndTheirSessionsAreNot) {
  members = {0x300017, 0x100017};
  flood(kMember, 50'000, 2s);
  EXPECT_NE(link.thinning.member_shift, 0u);
  EXPECT_FALSE(link.thinning.unmarked_aside);
  EXPECT_EQ(link.thinning.members, (std::vector<std::uint32_t>{0x100017, 0x300017})) << "in ascending order";
  passed = 0;
  flood(kMember, 50'000, 10s);
  EXPECT_LE(passed, 10 * kPerSecond);
  members.push_back(0x200017);
  flood(kMember, 50'000, 20ms);
  EXPECT_EQ(link.thinning.members.size(), 3u) << "a session begins in the flood";
  members.resize(link::Thinning::kMembersMax + 1, 0x400017);
  flood(kMember, 50'000, 20ms);
  EXPECT_TRUE(link.thinning.none()) << "more sessions than the link distinguishes";
}

TEST_F(FloodWatchTest, OfATotalWhatIsMoreThanCanWaitAsideHasAMark) {
  std::uint64_t total = 0;
  const auto refuse = [&](std::int64_t in_interval) {
    watch.note_total(now, total += static_cast<std::uint64_t>(in_interval));
    watch.review(now += FloodWatch::kInterval);
  };
  for (int i = 0; i < 100; ++i) refuse(500);
  EXPECT_TRUE(link.thinning.unmarked_aside);
  EXPECT_NE(link.thinning.member_shift, 0u);
  EXPECT_NE(link.thinning.unknown_shift, 0u);
  for (int i = 0; i < 2000; ++i) refuse(static_cast<std::int64_t>(link::Thinning::kAsideFrames));
  EXPECT_TRUE(link.thinning.unmarked_aside);
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
  watch.review(now += 1s);
  EXPECT_NE(link.thinning.member_shift, 0u);
  EXPECT_FALSE(link.thinning.unmarked_aside);
  for (int i = 0; i < 2 * FloodLevel::kBurst; ++i) watch.note_bytes(now, ConstBytes(bytes).first(12));
  watch.review(now += 1s);
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
}  // namespace cluster::network
