// What endpoints of a process share: counters that are reused from zero, and keys that are found by an endpoint's name.
#include "provider/machine.h"

#include <gtest/gtest.h>

#include <new>

#include "support/failing_memory.h"
#include "support/seal_keys.h"

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

const std::byte kIp[] = {std::byte{10}, std::byte{0}, std::byte{0}, std::byte{1}};
const SocketAddress kName = SocketAddress::v4(kIp, 9228);

seal::JobKeys one_key() { return test::credentials({"0123456789abcdef"}).keys; }

TEST(EndpointKeysTest, AnEndpointHasItsKeysUntilItEnds) {
  EndpointKeys keys;
  std::shared_ptr<void> endpoint = keys.add(kName, one_key());
  EXPECT_EQ(keys.of(kName).size(), 1u);
  endpoint.reset();
  EXPECT_TRUE(keys.of(kName).empty());
}

TEST(EndpointKeysTest, WithoutMemoryNothingIsLeftAndTheNextOneIsTaken) {
  EndpointKeys keys;
  for (std::size_t allowed = 0;; ++allowed) {
    const seal::JobKeys wanted = one_key();
    const test::FailingMemory failing(allowed);
    try {
      const std::shared_ptr<void> endpoint = keys.add(kName, wanted);
      ASSERT_GT(allowed, 0u);  // some allocation has failed before
      EXPECT_EQ(keys.of(kName).size(), 1u);
      return;
    } catch (const std::bad_alloc&) {
      EXPECT_TRUE(keys.of(kName).empty());
    }
  }
}

}  // namespace
}  // namespace cluster::provider
