// Frames of the attacker on the path of a group reach members, and members refuse them for each reason that
// there is. GroupOracle checks in every run that no such frame is delivered.
#include "sim/group_attacker.h"

#include <gtest/gtest.h>

#include "sim/group_simulation.h"

namespace cluster::sim {
namespace {

TEST(GroupAttacker, FramesThatAreForgedReplayedOrWithoutSealReachMembersAndAreRefused) {
  Counters sum;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    RunOptions options;
    options.seed = seed;
    options.workload = kGroupWorkload;
    options.security = "any";
    const RunReport report = GroupSimulation(options).run();
    sum.refused_unsealed += report.counters.refused_unsealed;
    sum.refused_forged += report.counters.refused_forged;
    sum.refused_replayed += report.counters.refused_replayed;
  }
  EXPECT_GT(sum.refused_unsealed, 100u);
  EXPECT_GT(sum.refused_forged, 100u);
  EXPECT_GT(sum.refused_replayed, 100u);
}

}  // namespace
}  // namespace cluster::sim
