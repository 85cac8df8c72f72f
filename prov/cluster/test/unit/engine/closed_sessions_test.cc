#include "engine/closed_sessions.h"

#include <gtest/gtest.h>

namespace cluster::engine {
namespace {

wire::Opening opening(std::uint64_t epoch, std::uint32_t session) {
  wire::Opening made;
  made.epoch = epoch;
  made.session = session;
  return made;
}

TEST(ClosedSessions, AConfirmedSessionClosesAllEarlierEpochs) {
  ClosedSessions closed;
  EXPECT_FALSE(closed.contains(opening(1000, 1)));
  closed.add({1000, 1}, true);
  closed.add({900, 2}, true);
  EXPECT_TRUE(closed.contains(opening(1000, 1)));
  EXPECT_TRUE(closed.contains(opening(950, 7)));
  EXPECT_FALSE(closed.contains(opening(1001, 1)));
}

/// Found by the simulator (seed 960009536): the late copy of an opening whose session was not the last to end
/// delivered its message once more.
TEST(ClosedSessions, AnUnconfirmedSessionClosesItselfOnly) {
  ClosedSessions closed;
  closed.add({1000, 1}, false);
  closed.add({3000, 2}, false);
  EXPECT_TRUE(closed.contains(opening(1000, 1)));
  EXPECT_TRUE(closed.contains(opening(3000, 2)));
  EXPECT_FALSE(closed.contains(opening(2000, 3))) << "an invented epoch makes no other session stale";
  EXPECT_FALSE(closed.contains(opening(1000, 9)));
  EXPECT_EQ(closed.epoch(), 3000u);
}

TEST(ClosedSessions, TheMemoryIsBounded) {
  ClosedSessions closed;
  for (std::uint32_t session = 1; session <= 100; ++session) closed.add({1000u + session, session}, false);
  EXPECT_FALSE(closed.contains(opening(1001, 1)));
  EXPECT_TRUE(closed.contains(opening(1100, 100)));
}

}  // namespace
}  // namespace cluster::engine
