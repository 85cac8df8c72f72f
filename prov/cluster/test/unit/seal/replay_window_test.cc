// The replay window against a set that remembers everything.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "seal/association.h"
#include "support/fake_environment.h"

namespace cluster::seal {
namespace {

TEST(ReplayWindow, TakesEachCounterOnceInAnyOrder) {
  test::FakeRandom random(7);
  ReplayWindow window;
  std::set<std::uint64_t> seen;
  std::uint64_t front = 1;
  for (int i = 0; i < 200'000; ++i) {
    if (random.below(3000) == 0) front += random.below(5000);  // a long gap
    front += random.below(3);
    const std::uint64_t back = random.below(1500);
    const std::uint64_t counter = front > back ? front - back : 1;
    const std::uint64_t newest = seen.empty() ? 0 : *seen.rbegin();
    const bool too_old = counter + ReplayWindow::kPlaces <= newest;
    const bool expected = !too_old && seen.count(counter) == 0;
    ASSERT_EQ(window.is_new(counter), expected) << counter << " of " << newest;
    if (expected) {
      window.mark(counter);
      seen.insert(counter);
      ASSERT_EQ(window.newest(), *seen.rbegin());
    }
  }
}

TEST(ReplayWindow, ZeroIsNoCounter) {
  EXPECT_FALSE(ReplayWindow().is_new(0));
  EXPECT_TRUE(ReplayWindow().is_new(1));
}

TEST(ReplayWindow, BothEndsAreExact) {
  ReplayWindow window;
  window.mark(5000);
  EXPECT_FALSE(window.is_new(5000));
  EXPECT_TRUE(window.is_new(5000 - ReplayWindow::kPlaces + 1));
  EXPECT_FALSE(window.is_new(5000 - ReplayWindow::kPlaces));
}

}  // namespace
}  // namespace cluster::seal
