#include "api/poll_backoff.h"

#include "unit/api/api_world.h"

namespace cluster::api::test {
namespace {

constexpr std::uint64_t kNoneRan = 1'000;          // ticks: the system call itself
constexpr std::uint64_t kWaiters = 50'000;         // tens of microseconds
constexpr std::uint64_t kComputation = 8'000'000;  // milliseconds

TEST(YieldInterval, IsShortestWhenOthersRunForAShortTime) {
  EXPECT_EQ(PollBackoff::next_yield_interval(PollBackoff::kYieldIntervalMax, kWaiters),
            PollBackoff::kYieldIntervalMin);
  EXPECT_EQ(PollBackoff::next_yield_interval(PollBackoff::kYieldIntervalMin, kWaiters),
            PollBackoff::kYieldIntervalMin);
}

TEST(YieldInterval, IsLongestWhenOthersCompute) {
  EXPECT_EQ(PollBackoff::next_yield_interval(PollBackoff::kYieldIntervalMin, kComputation),
            PollBackoff::kYieldIntervalMax);
  EXPECT_EQ(PollBackoff::next_yield_interval(PollBackoff::kYieldIntervalMax, kComputation),
            PollBackoff::kYieldIntervalMax);
}

TEST(YieldInterval, DoublesEachTimeThatNoOtherThreadRan) {
  std::uint32_t interval = PollBackoff::kYieldIntervalMin;
  for (std::uint32_t expected = 2 * interval; expected <= PollBackoff::kYieldIntervalMax; expected *= 2) {
    interval = PollBackoff::next_yield_interval(interval, kNoneRan);
    EXPECT_EQ(interval, expected);
  }
  EXPECT_EQ(PollBackoff::next_yield_interval(interval, kNoneRan), PollBackoff::kYieldIntervalMax);
}

// Yields happen at checks only.
TEST(YieldInterval, IsAMultipleOfTheCheckInterval) {
  for (std::uint32_t interval = PollBackoff::kYieldIntervalMin; interval <= PollBackoff::kYieldIntervalMax;
       interval *= 2) {
    EXPECT_EQ(interval % PollBackoff::kReadsPerCheck, 0u);
  }
}

/// A reader whose clock advances only by the time of its reads and its work.
class PollBackoffTest : public ::testing::Test {
 protected:
  PollBackoffTest() { platform.clock().step = 0us; }
  /// Idle reads that follow each other without work in between.
  void spin(int reads, Duration read = 200ns) { work_and_read(reads, 0us, read); }
  void work_and_read(int reads, Duration work, Duration read = 200ns) {
    for (int i = 0; i < reads; ++i) {
      platform.clock().advance(work + read);
      backoff.record_idle([&] { platform.clock().advance(read); });
    }
  }
  MemoryPlatform platform;
  PollBackoff backoff{platform};
};

TEST_F(PollBackoffTest, NeverWaitsForAProgramThatWorksBetweenItsReads) {
  platform.others_run = 50us;
  for (const Duration work : {Duration(5us), Duration(20us), Duration(1ms)}) work_and_read(20000, work);
  EXPECT_EQ(platform.sleeps, 0);
  EXPECT_EQ(platform.yields, 0);
}

TEST_F(PollBackoffTest, NeverWaitsBetweenShortBurstsOfReads) {
  for (int burst = 0; burst < 5000; ++burst) {
    spin(static_cast<int>(PollBackoff::kReadsBeforeCheck));
    platform.clock().advance(40us);
  }
  EXPECT_EQ(platform.sleeps, 0);
  EXPECT_EQ(platform.yields, 0);
}

TEST_F(PollBackoffTest, UnbrokenSpinningYieldsAndNeverSleeps) {
  for (const Duration others : {Duration(0us), Duration(20us), Duration(4ms)}) {
    platform.others_run = others;
    platform.yields = 0;
    spin(500000);  // 100 ms
    EXPECT_GT(platform.yields, 0);
  }
  EXPECT_EQ(platform.sleeps, 0);
}

/// Otherwise each of a hundred processes on two processors would use up its time slice.
TEST_F(PollBackoffTest, TurnsOfManyPeersAreNoWork) {
  platform.others_run = 20us;
  spin(5000, 20us);
  EXPECT_GT(platform.yields, 100);
  platform.yields = 0;
  platform.clock().advance(1s);
  work_and_read(5000, 40us, 20us);
  EXPECT_EQ(platform.yields, 0);
}

TEST_F(PollBackoffTest, AGapPutsTheNextYieldOff) {
  platform.others_run = 20us;
  spin(static_cast<int>(PollBackoff::kYieldIntervalMax));  // from here on yields are frequent
  platform.clock().advance(5ms);
  platform.yields = 0;
  spin(static_cast<int>(PollBackoff::kYieldIntervalMin));
  EXPECT_LE(platform.yields, 1);
}

TEST_F(PollBackoffTest, UnbrokenSpinningYieldsOftenWhereOthersWait) {
  platform.others_run = 20us;
  spin(static_cast<int>(PollBackoff::kYieldIntervalMax));
  const int first = platform.yields;
  EXPECT_GE(first, 1);
  spin(10 * static_cast<int>(PollBackoff::kYieldIntervalMin));
  EXPECT_EQ(platform.yields - first, 10);
}

TEST_F(PollBackoffTest, UnbrokenSpinningYieldsRarelyWhereOthersCompute) {
  platform.others_run = 4ms;
  spin(10 * static_cast<int>(PollBackoff::kYieldIntervalMax));
  EXPECT_LE(platform.yields, 10);
  EXPECT_GE(platform.yields, 5);
}

/// As fifty ranks on one processor, which all wait.
TEST_F(PollBackoffTest, UnbrokenSpinningYieldsOftenWhereManyWait) {
  platform.threads = 50;
  platform.others_run = 49 * 50us;
  spin(static_cast<int>(PollBackoff::kYieldIntervalMax));
  const int first = platform.yields;
  spin(10 * static_cast<int>(PollBackoff::kYieldIntervalMin));
  EXPECT_EQ(platform.yields - first, 10);
}

TEST_F(PollBackoffTest, UnbrokenSpinningYieldsRarelyWhereSeveralCompute) {
  platform.threads = 4;
  platform.others_run = 3 * 4ms;
  spin(10 * static_cast<int>(PollBackoff::kYieldIntervalMax));
  EXPECT_LE(platform.yields, 10);
  EXPECT_GE(platform.yields, 5);
}

/// Otherwise slow readers would take each other for threads that compute.
TEST_F(PollBackoffTest, ASlowReaderYieldsBeforeItLooksLikeAComputation) {
  platform.others_run = 4ms;
  spin(1000, 20us);  // 20 ms
  EXPECT_GE(platform.yields, 10);
  EXPECT_LE(platform.yields, 30);
}

TEST_F(PollBackoffTest, AnEventEndsTheSpinning) {
  platform.others_run = 50us;
  for (int event = 0; event < 1000; ++event) {
    spin(static_cast<int>(PollBackoff::kYieldIntervalMin) - 1);
    backoff.record_event();
  }
  EXPECT_EQ(platform.sleeps, 0);
  EXPECT_EQ(platform.yields, 0);
}

/// The same through libfabric's calls, which must not wait.
class NonBlockingReadTest : public PairTest {
 protected:
  NonBlockingReadTest() {
    start();
    cntr = open_cntr();  // as MPICH's: of accesses that this endpoint begins
    EXPECT_EQ(fi_ep_bind(left.endpoint, &cntr->fid, FI_READ | FI_WRITE), 0);
    platform.clock().step = 10ns;
  }
  ~NonBlockingReadTest() override {
    platform.clock().step = 10us;  // closing takes turns until the linger is over by this clock
    left.close();
    right.close();
    left.endpoint = nullptr;
    EXPECT_EQ(fi_close(&cntr->fid), 0);
  }
  void read(int kind) {
    fi_cq_tagged_entry entry{};
    switch (kind) {
      case 0: fi_cntr_read(cntr); break;
      case 1: fi_cntr_readerr(cntr); break;
      case 2: EXPECT_EQ(fi_cq_read(left.receives, &entry, 1), -FI_EAGAIN); break;
      default: break;
    }
  }
  fid_cntr* cntr;
};

TEST_F(NonBlockingReadTest, AProgramThatWorksBetweenItsReadsIsNotDelayed) {
  platform.others_run = 50us;
  for (const int kind : {0, 1, 2}) {
    for (int i = 0; i < 5000; ++i) {
      platform.clock().advance(Duration(20us) + i % 5 * 20us);
      read(kind);
      if (i % 2 == 0) read(kind);
    }
  }
  EXPECT_EQ(platform.sleeps, 0);
  EXPECT_EQ(platform.yields, 0);
}

TEST_F(NonBlockingReadTest, AProgramThatPostsBetweenItsReadsIsNotDelayed) {
  platform.others_run = 50us;
  for (int i = 0; i < 3000; ++i) {
    platform.clock().advance(20us);
    std::uint64_t word = static_cast<std::uint64_t>(i);
    while (fi_tinject(left.endpoint, &word, sizeof word, to_right, 7) == -FI_EAGAIN) read(2);
    for (const int kind : {0, 1, 2}) read(kind);
  }
  EXPECT_EQ(platform.sleeps, 0);
}

// As MPI libraries do: each turn of a ping-pong looks at a queue and at a counter that never changes.
TEST_F(NonBlockingReadTest, APingPongThatReadsAnIdleCounterIsNotDelayed) {
  constexpr std::size_t kTurns = 3000;
  platform.others_run = 50us;
  std::vector<Duration> turns;
  for (std::size_t turn = 0; turn < kTurns; ++turn) {
    const Time start = platform.clock().now();
    std::uint64_t word = turn;
    ASSERT_EQ(fi_trecv(right.endpoint, &word, sizeof word, nullptr, FI_ADDR_UNSPEC, 7, 0, &word), 0);
    ASSERT_EQ(fi_tinject(left.endpoint, &word, sizeof word, to_right, 7), 0);
    fi_cq_tagged_entry entry{};
    while (fi_cq_read(right.receives, &entry, 1) == -FI_EAGAIN) {
      read(0);
      read(2);
    }
    platform.clock().advance(5us);
    turns.push_back(platform.clock().now() - start);
  }
  EXPECT_EQ(platform.sleeps, 0);
  EXPECT_EQ(platform.yields, 0);
  std::sort(turns.begin(), turns.end());
  EXPECT_LE(turns[kTurns * 99 / 100], 2 * turns[kTurns / 2]);
}

TEST_F(NonBlockingReadTest, SpinningOnAQueueACounterAndMemoryNeverSleeps) {
  platform.others_run = 20us;
  for (int i = 0; i < 100000; ++i) read(i % 3);
  EXPECT_EQ(platform.sleeps, 0);
}

TEST_F(NonBlockingReadTest, UnbrokenSpinningGivesTheProcessorAway) {
  platform.others_run = 20us;
  for (const int kind : {0, 1, 2}) {
    platform.yields = 0;
    for (int i = 0; i < 20000; ++i) read(kind);
    EXPECT_GT(platform.yields, 0) << kind;
  }
}

}  // namespace
}  // namespace cluster::api::test
