// What a sender does while its messages find no space at the receiver. It probes until there is space, at
// the rate that docs/protocol.md 3.2 allows, and then stops.
#include <gtest/gtest.h>

#include "sim/measure.h"

namespace cluster::sim {
namespace {

constexpr std::uint32_t kHeldMessages = 100;
constexpr std::size_t kStored = 16;
constexpr auto kAway = 20s;  ///< longer than the peer timeout

class HeldBackTest : public testing::Test {
 protected:
  HeldBackTest() : cluster(1, 2, plain_plan(Pattern::one_way, 64, kHeldMessages)) {
    HostProfile profile;
    profile.settings.unexpected_max = kStored;
    cluster.add_host(profile);
    cluster.add_host(profile);
    for (const auto& host : cluster.hosts) host->start();
    cluster.hosts[1]->pause(kAway, SimHost::PauseKind::computing);
  }

  SimCluster cluster;
};

TEST_F(HeldBackTest, ItAsksOnceASecondAndIsSentKeepAlivesAsOften) {
  cluster.run_for(5s);
  const std::uint64_t before = cluster.network.totals().frames;
  constexpr int seconds = 12;
  cluster.run_for(Duration{seconds * 1s});
  const std::uint64_t said = cluster.network.totals().frames - before;
  constexpr std::uint64_t with_answers = 2;
  EXPECT_GE(said, seconds - 1u) << "it has given up";
  EXPECT_LE(said, (seconds + 1) * (2 * with_answers + 1))
      << "a question, in two parts for a narrow path, and a keep-alive";
  EXPECT_EQ(cluster.oracle.totals().failures, 0u);
}

TEST_F(HeldBackTest, NothingIsSaidAnyMoreOnceAllIsTaken) {
  cluster.run_for(kAway + 100ms);
  for (const auto& host : cluster.hosts) {
    host->application().finish();
    host->application().cancel_receives();
    host->wake_now();
  }
  cluster.run_for(5s);
  EXPECT_EQ(cluster.oracle.totals().delivered, kHeldMessages);
  EXPECT_TRUE(cluster.event_queue.empty()) << "frames are still sent";
}

}  // namespace
}  // namespace cluster::sim
