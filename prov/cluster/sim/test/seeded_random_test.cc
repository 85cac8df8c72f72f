// A seed gives the same run on every machine only if it gives these numbers everywhere.
#include "sim/seeded_random.h"

#include <gtest/gtest.h>

#include "sim/event_queue.h"

namespace cluster::sim {
namespace {

TEST(SeededRandom, TheSameEverywhere) {
  SeededRandom random(42);
  EXPECT_EQ(random.next(), 0xC757960B442B0AC3u);
  EXPECT_EQ(random.below(1000), 295u);
}

TEST(SeededRandom, StreamsDiffer) {
  SeededRandom one = SeededRandom::stream(7, 1, 0);
  SeededRandom two = SeededRandom::stream(7, 1, 1);
  SeededRandom three = SeededRandom::stream(7, 2, 0);
  const std::uint64_t first = one.next();
  EXPECT_NE(first, two.next());
  EXPECT_NE(first, three.next());
}

TEST(SeededRandom, KeepsItsBounds) {
  SeededRandom random(1);
  bool lowest = false;
  bool highest = false;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t value = random.between(3, 6);
    ASSERT_GE(value, 3u);
    ASSERT_LE(value, 6u);
    lowest = lowest || value == 3;
    highest = highest || value == 6;
  }
  EXPECT_TRUE(lowest && highest);
  EXPECT_FALSE(random.chance(0));
  EXPECT_TRUE(random.chance(kMillion));
}

class Recorder final : public EventHandler {
 public:
  explicit Recorder(EventQueue& event_queue) : event_queue_(event_queue) {}
  void handle_event(std::uint64_t note) override { seen.emplace_back(event_queue_.now(), note); }
  std::vector<std::pair<Time, std::uint64_t>> seen;

 private:
  EventQueue& event_queue_;
};

TEST(EventQueue, JumpsFromOneThingToTheNext) {
  EventQueue event_queue;
  Recorder recorder(event_queue);
  event_queue.plan(Time{} + 1h, recorder, 3);
  event_queue.plan(Time{} + 1us, recorder, 1);
  event_queue.plan(Time{} + 1us, recorder, 2);
  while (!event_queue.empty()) event_queue.step();
  ASSERT_EQ(recorder.seen.size(), 3u);
  EXPECT_EQ(recorder.seen[0], std::pair(Time{} + 1us, std::uint64_t{1}));
  EXPECT_EQ(recorder.seen[1], std::pair(Time{} + 1us, std::uint64_t{2}));
  EXPECT_EQ(recorder.seen[2], std::pair(Time{} + 1h, std::uint64_t{3}));
}

TEST(EventQueue, TheDigestKnowsTheOrder) {
  const auto digest = [](std::uint64_t first, std::uint64_t second) {
    EventQueue event_queue;
    Recorder recorder(event_queue);
    event_queue.plan(Time{} + 1us, recorder, first);
    event_queue.plan(Time{} + 1us, recorder, second);
    while (!event_queue.empty()) event_queue.step();
    return event_queue.digest();
  };
  EXPECT_EQ(digest(1, 2), digest(1, 2));
  EXPECT_NE(digest(1, 2), digest(2, 1));
}

}  // namespace
}  // namespace cluster::sim
