// The growing queue: order, growth across the wrap, and release of what was popped.
#include "base/ring_queue.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>

namespace cluster {
namespace {

TEST(RingQueue, BeginsEmpty) {
  RingQueue<int> ring;
  EXPECT_TRUE(ring.empty());
  EXPECT_EQ(ring.size(), 0u);
  ring.clear();
  EXPECT_TRUE(ring.empty());
}

TEST(RingQueue, KeepsOrderLikeADeque) {
  RingQueue<unsigned> ring;
  std::deque<unsigned> model;
  unsigned next = 0;
  // Push more than is popped, so that the ring grows several times with its head in the middle.
  for (unsigned round = 0; round < 500; ++round) {
    for (unsigned i = 0; i < 3 + round % 5; ++i, ++next) {
      ring.push_back(next);
      model.push_back(next);
    }
    for (unsigned i = 0; i < 2 + round % 3 && !model.empty(); ++i) {
      ASSERT_EQ(ring.front(), model.front());
      ring.pop_front();
      model.pop_front();
    }
    ASSERT_EQ(ring.size(), model.size());
    for (std::size_t i = 0; i < model.size(); ++i) ASSERT_EQ(ring[i], model[i]) << "round " << round;
  }
}

TEST(RingQueue, StaysInPlaceWhileThereIsSpace) {
  RingQueue<int> ring;
  ring.push_back(1);
  const int* first = &ring.front();
  for (int i = 0; i < 1000; ++i) {
    ring.push_back(i);
    ring.pop_front();
    EXPECT_EQ(ring.front(), i);
  }
  ring.clear();
  for (int i = 0; i < 64; ++i) ring.push_back(i);
  bool seen = false;
  for (std::size_t i = 0; i < ring.size(); ++i) seen = seen || &ring[i] == first;
  EXPECT_TRUE(seen) << "the ring moved though it never held more than 64 items";
}

TEST(RingQueue, LetsGoOfWhatWasPopped) {
  RingQueue<std::shared_ptr<int>> ring;
  auto item = std::make_shared<int>(7);
  ring.push_back(item);
  ring.push_back(item);
  EXPECT_EQ(item.use_count(), 3);
  ring.pop_front();
  EXPECT_EQ(item.use_count(), 2);
  ring.clear();
  EXPECT_EQ(item.use_count(), 1);
}

TEST(RingQueue, MovesItemsThatCannotBeCopied) {
  RingQueue<std::unique_ptr<int>> ring;
  for (int i = 0; i < 200; ++i) ring.push_back(std::make_unique<int>(i));
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(*ring.front(), i);
    ring.pop_front();
  }
  EXPECT_TRUE(ring.empty());
}

}  // namespace
}  // namespace cluster
