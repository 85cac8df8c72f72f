// Completion queues and counters: when they wake a sleeper, and when it need not sleep. (The contents of
// entries are tested with the code that writes and reads them.)
#include "protocol/completion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

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
  ASSERT_TRUE(queue.wake_at_next(waker));
  EXPECT_FALSE(waker.awake) << "its earlier event has been handled";
  push();
  push();
  EXPECT_TRUE(waker.awake);
  EXPECT_EQ(waker.woken, 1) << "once per call";
}

TEST_F(CompletionQueueTest, NoSleepIfThereIsOne) {
  push(Status::reset);
  EXPECT_FALSE(queue.wake_at_next(waker));
  EXPECT_TRUE(waker.awake) << "another thread may sleep on it";
  EXPECT_EQ(take(1), 1u);
  ASSERT_TRUE(queue.wake_at_next(waker));
  push();
  EXPECT_EQ(waker.woken, 1);
}

/// Else the application would wait for them.
TEST_F(CompletionQueueTest, CompletionsThatFindNoMemoryAreSaidToBeLost) {
  EXPECT_TRUE(queue.wake_at_next(waker));
  std::size_t places = 0;
  {
    const test::FailingMemory memory(0);
    for (; test::FailingMemory::failed() == 0; ++places) push();
    push(Status::reset);
    queue.push_success([](Completion&) { ADD_FAILURE(); });
  }
  EXPECT_EQ(waker.woken, 1);
  std::vector<Status> statuses;
  queue.drain(
      ~std::size_t{0}, [](const Completion&) { return true; },
      [&](const Completion& completion) { statuses.push_back(completion.status); });
  ASSERT_EQ(statuses.size(), places - 1);
  EXPECT_EQ(std::ranges::count(statuses, Status::ok), static_cast<std::ptrdiff_t>(places) - 2);
  EXPECT_EQ(statuses.back(), Status::overrun);
  push();
  EXPECT_EQ(take(1), 1u);
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
