#include "os/neighbour_table.h"

#include <gtest/gtest.h>

#include "conformance/link_station.h"

namespace cluster::os {
namespace {

std::uint64_t times_full = 0;
unsigned times_asked = 0;

std::uint64_t counted(SocketAddress::Family) {
  ++times_asked;
  return times_full;
}

class NeighbourTableTest : public ::testing::Test {
 protected:
  NeighbourTableTest() {
    times_full = 7;  // it was full before this process began
    times_asked = 0;
  }
  bool is_full() {
    now_ += NeighbourTable::kAskAgain;
    return table_.is_full(now_);
  }

  test::QuietLog log_;
  NeighbourTable table_{SocketAddress::Family::v4, log_, counted};
  Time now_{};
};

TEST_F(NeighbourTableTest, AFullQueueIsNoFullTable) {
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(is_full());
  EXPECT_FALSE(table_.was_full(now_));
  EXPECT_EQ(log_.text(), "");
}

TEST_F(NeighbourTableTest, IsFullAsLongAsTheCountRises) {
  EXPECT_FALSE(is_full());
  ++times_full;
  EXPECT_TRUE(is_full());
  ++times_full;
  EXPECT_TRUE(is_full());
  EXPECT_FALSE(is_full());
  EXPECT_TRUE(table_.was_full(now_));
  EXPECT_FALSE(table_.was_full(now_ + NeighbourTable::kFullFor));
  EXPECT_NE(log_.text().find("net.ipv4.neigh.default.gc_thresh3"), std::string::npos);
}

TEST_F(NeighbourTableTest, AnAnswerCountsForAWhile) {
  EXPECT_FALSE(is_full());
  ++times_full;
  EXPECT_FALSE(table_.is_full(now_ + NeighbourTable::kAskAgain - 1ns));
  EXPECT_TRUE(is_full());
  EXPECT_TRUE(table_.is_full(now_));
  EXPECT_EQ(times_asked, 2u);
}

TEST(NeighbourTable, TheKernelTellsHowOftenItsTableWasFull) {
  const std::uint64_t before = neighbour_overflows(SocketAddress::Family::v4);
  EXPECT_GE(neighbour_overflows(SocketAddress::Family::v4), before);
}

}  // namespace
}  // namespace cluster::os
