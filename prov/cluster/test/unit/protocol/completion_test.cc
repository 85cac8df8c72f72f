// Completion queues and counters: when they wake a sleeper, and when it need not sleep. (The contents of
// entries are tested with the code that writes and reads them.)
#include "protocol/completion.h"

#include <gtest/gtest.h>

#include <new>

#include "base/end_of_memory.h"
#include "support/failing_memory.h"

namespace cluster::protocol {
namespace {

struct CountingWaker final : Waker {
  void wake() override {
    ++woken;
    awake = true;
  }
  void clear() override { awake = false; }

  int woken = 0;
  bool awake = true;  ///< from something else
};

struct CompletionQueueTest : testing::Test {
  void push(Status status = Status::ok) {
    Completion completion;
    completion.status = status;
    queue.push(completion);
  }
  std::size_t take(std::size_t count) {
    return queue.drain(
        count, [](const Completion&) { return true; }, [](const Completion&) {});
  }

  CompletionQueue queue;
  CountingWaker waker;
};

TEST_F(CompletionQueueTest, TheNextCompletionWakesOnce) {
  ASSERT_TRUE(queue.wake_at_next(waker, 1));
  EXPECT_FALSE(waker.awake) << "its earlier event has been handled";
  push();
  push();
  EXPECT_TRUE(waker.awake);
  EXPECT_EQ(waker.woken, 1) << "once per call";
}

TEST_F(CompletionQueueTest, NoSleepIfThereAreEnough) {
  push();
  EXPECT_FALSE(queue.lacks(1));
  EXPECT_FALSE(queue.wake_at_next(waker, 1));
  EXPECT_TRUE(waker.awake) << "another thread may sleep on it";
  EXPECT_TRUE(queue.lacks(2));
  ASSERT_TRUE(queue.wake_at_next(waker, 2));
  push();
  EXPECT_EQ(waker.woken, 1);
  EXPECT_FALSE(queue.lacks(2));
  EXPECT_EQ(take(1), 1u);
  EXPECT_TRUE(queue.lacks(2));
}

TEST_F(CompletionQueueTest, AFailureIsEnoughUntilItHasBeenTaken) {
  push();
  push(Status::reset);
  EXPECT_FALSE(queue.lacks(10));
  EXPECT_FALSE(queue.wake_at_next(waker, 10));
  take(1);
  EXPECT_FALSE(queue.lacks(10));
  take(1);
  EXPECT_TRUE(queue.lacks(10));
  EXPECT_TRUE(queue.wake_at_next(waker, 10));
}

/// base/end_of_memory.h: what was accepted can be reported.
TEST_F(CompletionQueueTest, WhatIsExpectedHasItsPlaceWithoutMemory) {
  constexpr std::size_t kOperations = 1000;
  for (std::size_t unread : {0, 77, 4000}) {
    CompletionQueue own;
    for (std::size_t i = 0; i < unread; ++i) own.push({});
    own.expect(kOperations);
    const test::FailingMemory memory(0);
    EXPECT_NO_THROW(own.require_place());
    EXPECT_NO_THROW(for (std::size_t i = 0; i < kOperations; ++i) own.push({}));
    if (!CompletionQueue::none_short()) {
      EXPECT_THROW(own.require_place(), std::bad_alloc) << "no operation begins";
    }
    EXPECT_THROW(own.expect(100'000), std::bad_alloc);
    EXPECT_THROW(for (;;) own.push({}), std::bad_alloc) << "rather than to overrun";
    own.drain(
        ~std::size_t{0}, [](const Completion&) { return true; }, [](const Completion&) {});
    EXPECT_NO_THROW(own.require_place()) << "entries have been read";
    EXPECT_TRUE(CompletionQueue::none_short());
  }
  EXPECT_TRUE(CompletionQueue::none_short());
}

/// A pool that grew for one queue alone would promise a place that is in none.
TEST_F(CompletionQueueTest, OperationsHavePlacesInBothQueuesOrInNeither) {
  CompletionQueue other;
  {
    CompletionPlaces places;
    places.attach(&queue, &other);
    for (std::size_t allowed = 0;; ++allowed) {
      const test::FailingMemory memory(allowed);
      if (enough_memory_for([&] { places.before_growth(3000); })) break;
    }
    const test::FailingMemory memory(0);
    EXPECT_NO_THROW(for (std::size_t i = 0; i < 3000; ++i) queue.push({}));
    EXPECT_NO_THROW(for (std::size_t i = 0; i < 3000; ++i) other.push({}));
  }
  EXPECT_NO_THROW(queue.require_place()) << "nothing is expected any more";
}

TEST_F(CompletionQueueTest, TakesFromTheHeadWhatIsWantedAndNoMore) {
  for (const Status status : {Status::ok, Status::ok, Status::reset, Status::ok}) push(status);
  const auto good = [](const Completion& completion) { return completion.status == Status::ok; };
  std::size_t seen = 0;
  EXPECT_EQ(queue.drain(10, good, [&](const Completion&) { ++seen; }), 2u);
  EXPECT_EQ(seen, 2u);
  Status front = Status::ok;
  const auto look = [&](const Completion& completion) {
    front = completion.status;
    return false;
  };
  EXPECT_EQ(queue.drain(1, look, [](const Completion&) { FAIL(); }), 0u);
  EXPECT_EQ(front, Status::reset);
  EXPECT_EQ(take(1), 1u);
  EXPECT_EQ(take(10), 1u);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.drain(1, look, [](const Completion&) { FAIL(); }), 0u);
}

TEST(CompletionCounter, AnyChangeWakesOnceAndEachIsCountedWhereItBelongs) {
  Counter counter;
  CountingWaker waker;
  int rounds = 0;
  const auto wakes = [&](auto&& change) {
    counter.wake_at_next(waker);
    EXPECT_FALSE(waker.awake);
    change();
    EXPECT_EQ(waker.woken, ++rounds);
    change();
    EXPECT_EQ(waker.woken, rounds) << "the second was not requested";
  };
  wakes([&] { counter.count(Status::ok); });
  EXPECT_EQ(counter.value(), 2u);
  EXPECT_EQ(counter.errors(), 0u);
  wakes([&] { counter.count(Status::truncated); });
  EXPECT_EQ(counter.value(), 2u);
  EXPECT_EQ(counter.errors(), 2u);
  wakes([&] { counter.add(10); });
  EXPECT_EQ(counter.value(), 22u);
  wakes([&] { counter.add_errors(5); });
  EXPECT_EQ(counter.errors(), 12u);
  wakes([&] { counter.set(1); });
  EXPECT_EQ(counter.value(), 1u);
  wakes([&] { counter.set_errors(0); });
  EXPECT_EQ(counter.errors(), 0u);
}

}  // namespace
}  // namespace cluster::protocol
