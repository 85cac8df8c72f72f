// Counters of endpoints that have gone are reused, starting from zero.
#include "provider/counter_pool.h"

#include <gtest/gtest.h>

namespace cluster::provider {
namespace {

TEST(CounterPool, ReleasedCountersAreReusedFromZero) {
  CounterPool pool;
  Counters& first = pool.acquire();
  first.frames_sent = 7;
  pool.release(first);
  Counters& again = pool.acquire();
  EXPECT_EQ(&again, &first);
  EXPECT_EQ(again.frames_sent, 0u);
}

TEST(CounterPool, CountersInUseAreNotShared) {
  CounterPool pool;
  Counters& first = pool.acquire();
  Counters& second = pool.acquire();
  EXPECT_NE(&first, &second);
  pool.release(second);
  first.frames_sent = 7;
  EXPECT_EQ(&pool.acquire(), &second);
  EXPECT_EQ(first.frames_sent, 7u);
}

}  // namespace
}  // namespace cluster::provider
