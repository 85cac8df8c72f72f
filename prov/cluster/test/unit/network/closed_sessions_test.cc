#include <gtest/gtest.h>

#include "network/remote_peer.h"

namespace cluster::network {
namespace {

wire::Opening opening(std::uint64_t epoch, std::uint32_t session) {
  wire::Opening made;
  made.epoch = epoch;
  made.session = session;
  return made;
}

TEST(ClosedSessions, ASessionClosesAllEarlierEpochs) {
  ClosedSessions closed;
  EXPECT_FALSE(closed.contains(opening(1000, 1)));
  closed.add({1000, 1});
  closed.add({900, 2});
  EXPECT_TRUE(closed.contains(opening(1000, 1)));
  EXPECT_TRUE(closed.contains(opening(950, 7)));
  EXPECT_FALSE(closed.contains(opening(1001, 1)));
  EXPECT_EQ(closed.epoch(), 1000u);
}

TEST(ClosedSessions, APeerThatHasBegunAnewClosesWhatItsEarlierIncarnationsOpened) {
  ClosedSessions closed;
  closed.add_before(0);
  EXPECT_FALSE(closed.contains(opening(1, 1)));
  closed.add_before(1000);
  EXPECT_TRUE(closed.contains(opening(999, 1)));
  EXPECT_FALSE(closed.contains(opening(1000, 2))) << "its own first one";
  closed.add_before(500);
  EXPECT_EQ(closed.epoch(), 999u);
}

}  // namespace
}  // namespace cluster::network
