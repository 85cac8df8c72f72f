// One seed is the same run on every machine only if these numbers are.
#include "sim/dice.h"

#include <gtest/gtest.h>

#include "sim/timetable.h"

namespace cluster::sim {
namespace {

TEST(Dice, TheSameEverywhere) {
  Dice dice(42);
  EXPECT_EQ(dice.next(), 0xC757960B442B0AC3u);
  EXPECT_EQ(dice.below(1000), 295u);
}

TEST(Dice, StreamsDiffer) {
  Dice one = Dice::stream(7, 1, 0);
  Dice two = Dice::stream(7, 1, 1);
  Dice three = Dice::stream(7, 2, 0);
  const std::uint64_t first = one.next();
  EXPECT_NE(first, two.next());
  EXPECT_NE(first, three.next());
}

TEST(Dice, KeepsItsBounds) {
  Dice dice(1);
  bool lowest = false;
  bool highest = false;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t value = dice.between(3, 6);
    ASSERT_GE(value, 3u);
    ASSERT_LE(value, 6u);
    lowest = lowest || value == 3;
    highest = highest || value == 6;
  }
  EXPECT_TRUE(lowest && highest);
  EXPECT_FALSE(dice.chance(0));
  EXPECT_TRUE(dice.chance(kMillion));
}

class Recorder final : public Actor {
 public:
  explicit Recorder(Timetable& timetable) : timetable_(timetable) {}
  void happen(std::uint64_t note) override { seen.emplace_back(timetable_.now(), note); }
  std::vector<std::pair<Time, std::uint64_t>> seen;

 private:
  Timetable& timetable_;
};

TEST(Timetable, JumpsFromOneThingToTheNext) {
  Timetable timetable;
  Recorder recorder(timetable);
  timetable.plan(Time{} + 1h, recorder, 3);
  timetable.plan(Time{} + 1us, recorder, 1);
  timetable.plan(Time{} + 1us, recorder, 2);
  while (!timetable.empty()) timetable.step();
  ASSERT_EQ(recorder.seen.size(), 3u);
  EXPECT_EQ(recorder.seen[0], std::pair(Time{} + 1us, std::uint64_t{1}));
  EXPECT_EQ(recorder.seen[1], std::pair(Time{} + 1us, std::uint64_t{2}));
  EXPECT_EQ(recorder.seen[2], std::pair(Time{} + 1h, std::uint64_t{3}));
}

TEST(Timetable, TheDigestKnowsTheOrder) {
  const auto digest = [](std::uint64_t first, std::uint64_t second) {
    Timetable timetable;
    Recorder recorder(timetable);
    timetable.plan(Time{} + 1us, recorder, first);
    timetable.plan(Time{} + 1us, recorder, second);
    while (!timetable.empty()) timetable.step();
    return timetable.digest();
  };
  EXPECT_EQ(digest(1, 2), digest(1, 2));
  EXPECT_NE(digest(1, 2), digest(2, 1));
}

}  // namespace
}  // namespace cluster::sim
