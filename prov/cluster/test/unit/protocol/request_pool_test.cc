// One id space for requests of several types: an id finds its request until that is released, and memory that
// a request owns is freed with it or with the pool.
#include "protocol/request_pool.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

namespace cluster::protocol {
namespace {

struct PooledBase {
  std::uint32_t id = 0;
  int kind = 0;
  std::shared_ptr<int> owned;
};
struct SmallRequest : PooledBase {
  SmallRequest() { kind = 1; }
};
struct LargeRequest : PooledBase {
  LargeRequest() { kind = 2; }
  std::uint64_t payload[40] = {};
};
using TestPool = RequestPool<PooledBase, SmallRequest, LargeRequest>;

TEST(RequestPoolTest, IdsAreUniqueAcrossTypesAndNameLiveRequestsOnly) {
  TestPool pool;
  std::set<std::uint32_t> ids;
  for (int i = 0; i < 100; ++i) {
    PooledBase* const small = pool.acquire<SmallRequest>();
    LargeRequest* const large = pool.acquire<LargeRequest>();
    large->payload[39] = 7;
    ASSERT_TRUE(ids.insert(small->id).second);
    ASSERT_TRUE(ids.insert(large->id).second);
    EXPECT_EQ(pool.find(small->id), small);
    EXPECT_EQ(pool.find(large->id)->kind, 2);
    const std::uint32_t released = small->id;
    pool.release(*small);
    EXPECT_EQ(pool.find(released), nullptr);
  }
  EXPECT_EQ(pool.alive(), 100u);
}

TEST(RequestPoolTest, AReusedCellHasANewIdAndAFreshRequest) {
  TestPool pool;
  LargeRequest* const first = pool.acquire<LargeRequest>();
  const std::uint32_t id = first->id;
  first->payload[0] = 1;
  pool.release(*first);
  SmallRequest* const second = pool.acquire<SmallRequest>();
  EXPECT_NE(second->id, id);
  EXPECT_EQ(second->kind, 1);
  EXPECT_EQ(second->owned, nullptr);
  EXPECT_EQ(pool.find(id), nullptr);
}

TEST(RequestPoolTest, WhatARequestOwnsIsFreedWithItOrWithThePool) {
  const auto memory = std::make_shared<int>(1);
  {
    TestPool pool;
    SmallRequest* const released = pool.acquire<SmallRequest>();
    released->owned = memory;
    pool.acquire<LargeRequest>()->owned = memory;
    EXPECT_EQ(memory.use_count(), 3);
    pool.release(*released);
    EXPECT_EQ(memory.use_count(), 2);
  }
  EXPECT_EQ(memory.use_count(), 1);
}

}  // namespace
}  // namespace cluster::protocol
