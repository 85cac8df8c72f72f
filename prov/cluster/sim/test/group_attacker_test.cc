// The attacker on the path of a group does what it is for: its frames reach members, which refuse them for each reason there is.
// That none of them is delivered GroupOracle judges in every run.
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
