// CLUSTER_COLL: what the library takes over, and which texts are errors.
#include "settings.h"

#include <gtest/gtest.h>

#include "call_counters.h"

namespace coll {
namespace {

TEST(CollSettings, OffTakesNothing) {
  const Settings settings("off");
  for (const Call call : {Call::barrier, Call::bcast, Call::allreduce, Call::allgather, Call::reduce})
    EXPECT_FALSE(settings.takes(call, 0));
  EXPECT_TRUE(settings.error().empty());
}

TEST(CollSettings, OnTakesEverything) {
  const Settings settings("on");
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, std::size_t{1} << 30})
    EXPECT_TRUE(settings.takes(Call::bcast, bytes));
  EXPECT_TRUE(settings.takes(Call::barrier, 0));
}

TEST(CollSettings, RangesHaveBothEnds) {
  const Settings settings("on,bcast=64K-1M,allreduce=-8,barrier=off");
  EXPECT_FALSE(settings.takes(Call::bcast, 65535));
  EXPECT_TRUE(settings.takes(Call::bcast, 65536));
  EXPECT_TRUE(settings.takes(Call::bcast, 1048576));
  EXPECT_FALSE(settings.takes(Call::bcast, 1048577));
  EXPECT_TRUE(settings.takes(Call::allreduce, 8));
  EXPECT_FALSE(settings.takes(Call::allreduce, 9));
  EXPECT_FALSE(settings.takes(Call::barrier, 0));
}

TEST(CollSettings, AWrongTextTakesNothingAndSaysWhy) {
  for (const char* const text :
       {"bcats=1-", "bcast=1", "bcast=x-", "bcast", "bcast=1G-", "bcast=99999999999999999999-"}) {
    const Settings settings(text);
    EXPECT_FALSE(settings.error().empty()) << text;
    EXPECT_FALSE(settings.takes(Call::barrier, 0)) << text;
  }
}

TEST(CollSettings, AReportMakesNoDifferenceBetweenRanks) {
  const Settings plain("bcast=1K-");
  const Settings reports("bcast=1K-,report");
  EXPECT_TRUE(reports.report());
  EXPECT_FALSE(plain.report());
  EXPECT_EQ(plain.fingerprint(), reports.fingerprint());
  EXPECT_NE(plain.fingerprint(), Settings("bcast=2K-").fingerprint());
}

TEST(CallCounters, SayWhatWasTakenOver) {
  CallCounters counters;
  counters.count(Call::bcast, true);
  counters.count(Call::bcast, false);
  counters.count(Call::barrier, true);
  EXPECT_EQ(counters.text(),
            "barrier 1 of 1, bcast 1 of 2, allreduce 0 of 0, allgather 0 of 0, reduce 0 of 0");
}

}  // namespace
}  // namespace coll
