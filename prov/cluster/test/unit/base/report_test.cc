// Reports: a reader gets back exactly what was written.
#include "base/report.h"

#include <gtest/gtest.h>

#include "support/fake_environment.h"

namespace cluster {
namespace {

Report sample() {
  Report report;
  report.emplace_back("endpoint").text("endpoint", "10.0.0.1:9228").number("open_ns", 0);
  report.emplace_back("peer").text("why", "no shared memory: no listener").flag("confirmed", false);
  report.back().number("sent_frames", UINT64_MAX).text("rail", "");
  return report;
}

TEST(Report, IsReadAsItWasWritten) {
  const std::string text = write_report(sample());
  const auto report = read_report(text);
  ASSERT_TRUE(report);
  ASSERT_EQ(report->size(), 2u);
  EXPECT_EQ((*report)[0].kind(), "endpoint");
  EXPECT_EQ((*report)[0]["endpoint"], "10.0.0.1:9228");
  EXPECT_EQ((*report)[1]["sent_frames"], "18446744073709551615");
  EXPECT_EQ((*report)[1]["confirmed"], "no");
  EXPECT_EQ((*report)[1]["rail"], "");
  EXPECT_EQ((*report)[1]["no_such"], "");
  EXPECT_EQ(write_report(*report), text);
}

TEST(Report, WhatCannotBePrintedIsNotWritten) {
  Report report;
  report.emplace_back("process").text("command", "a\nb\x1b[2Jc\xc3\xa9").text("long", std::string(5000, 'x'));
  EXPECT_EQ(report[0]["command"], "a?b?[2Jc??");
  EXPECT_EQ(report[0]["long"].size(), kFactValueMax);
  EXPECT_TRUE(read_report(write_report(report)));
}

TEST(Report, AnythingElseIsNoReport) {
  EXPECT_TRUE(read_report(""));
  for (const char* text : {"[",
                           "[\n",
                           "\n",
                           "[peer",
                           "[Peer\n",
                           "=name x\n",
                           "[peer\n=name\n",
                           "[peer\n=Name x\n",
                           "[peer\n= x\n",
                           "[peer\n#n x\n",
                           "[peer\n#n \n",
                           "[peer\n#n -\n",
                           "[peer\n#n 007\n",
                           "[peer\n#n 1e9\n",
                           "[peer\n#n 123456789012345678901\n",
                           "[peer\n?f maybe\n",
                           "[peer\n!n 1\n",
                           "[peer\n=n a\tb\n",
                           "[peer\n=n x",
                           "[peer\n=n \x1b[2J\n",
                           "[peer\n\n"}) {
    EXPECT_FALSE(read_report(text)) << text;
  }
  EXPECT_FALSE(read_report("[peer\n=n " + std::string(kFactValueMax + 1, 'x') + "\n"));
  EXPECT_FALSE(read_report("[" + std::string(kFactNameMax + 1, 'x') + "\n"));
}

TEST(Report, DamageIsNoticedOrHarmless) {
  const std::string text = write_report(sample());
  test::FakeRandom dice(7);
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = text;
    for (std::uint64_t hits = 1 + dice.below(3); hits > 0; --hits) {
      damaged[dice.below(damaged.size())] = static_cast<char>(dice.next());
    }
    damaged.resize(damaged.size() - dice.below(4));
    const auto report = read_report(damaged);
    if (report) {
      EXPECT_EQ(write_report(*report), damaged);
    }
  }
}

}  // namespace
}  // namespace cluster
