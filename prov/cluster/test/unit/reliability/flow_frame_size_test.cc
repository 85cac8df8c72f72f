// How long frames may be: what lies between two links that take long ones may not.
#include <gtest/gtest.h>

#include "support/flow_pair.h"

namespace cluster::test {
namespace {

struct JumboPair : FlowPair {
  explicit JumboPair(std::uint64_t seed) : FlowPair(seed, jumbo()) {}
  static reliability::FlowSettings jumbo() {
    reliability::FlowSettings settings;
    settings.frame_max = 8972;
    return settings;
  }
  void exchange() {
    for (int i = 0; i < 40; ++i) a.send_small(1000);
    for (int i = 0; i < 40; ++i) b.send_small(1000);
    ASSERT_TRUE(run(1s));
    b.expect_all_of(a);
    a.expect_all_of(b);
  }
};

TEST(FlowFrameSize, LongFramesAreUsedOnceOneHasArrived) {
  JumboPair pair(1);
  EXPECT_LE(pair.a.full_bulk(), 1472u);
  pair.exchange();
  EXPECT_EQ(pair.a.full_bulk(), 8972u - 32 - 20);
  EXPECT_EQ(pair.b.full_bulk(), 8972u - 32 - 20);
  pair.a.send_bulk(pair.a.full_bulk());
  pair.exchange();
}

TEST(FlowFrameSize, APathThatSwallowsLongFramesIsUsedWithShortOnesAndSaidOnce) {
  JumboPair pair(1);
  pair.network.drop = [](const FakeNetwork::Packet& packet, const SocketAddress&) {
    return packet.bytes.size() > 1472;
  };
  for (int i = 0; i < 5; ++i) pair.exchange();
  EXPECT_EQ(pair.a.full_bulk(), 1472u - 32 - 20);
  ASSERT_EQ(pair.a.log.lines.size(), 1u);
  EXPECT_NE(pair.a.log.lines[0].find("8972"), std::string::npos);
  EXPECT_LE(pair.network.lost, 8u) << "a few tries each";
}

TEST(FlowFrameSize, RandomLossDoesNotMakeAPathShort) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    JumboPair pair(seed);
    pair.network.conditions.loss = 0.1;
    pair.exchange();
    pair.exchange();
    EXPECT_GT(pair.a.full_bulk(), 8000u) << "seed " << seed;
  }
}

}  // namespace
}  // namespace cluster::test
