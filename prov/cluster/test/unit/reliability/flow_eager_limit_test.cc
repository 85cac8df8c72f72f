// How long a message may be that a flow carries eagerly.
#include <gtest/gtest.h>

#include "support/flow_pair.h"

namespace cluster::test {
namespace {

TEST(FlowEagerLimit, MoreOnceTheWindowHasGrownAndLessAfterLosses) {
  FlowPair pair(1);
  const std::size_t first = pair.a.flow->queue().eager_limit();
  EXPECT_LT(first, 32u * 1024) << "many senders that begin at once would overrun a port";
  const auto stream = [&pair](int frames) {
    for (int i = 0; i < frames; ++i) pair.a.send_bulk(pair.a.full_bulk());
    ASSERT_TRUE(pair.run(10s));
  };
  stream(2000);
  EXPECT_GE(pair.a.flow->queue().eager_limit(), 64u * 1024);
  pair.network.conditions.loss = 0.5;
  stream(200);
  EXPECT_LT(pair.a.flow->queue().eager_limit(), 32u * 1024);
}

}  // namespace
}  // namespace cluster::test
