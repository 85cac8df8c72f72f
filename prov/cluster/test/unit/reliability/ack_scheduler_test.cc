// When frames are acknowledged.
#include "reliability/ack_scheduler.h"

#include <gtest/gtest.h>

namespace cluster::reliability {
namespace {

TEST(AckScheduler, CountsFramesByClass) {
  AckScheduler acks(25us);
  for (std::uint32_t i = 1; i <= 15; ++i)
    acks.on_frame(Time(0us), Time(0us), {i}, true, AckScheduler::Urgency::none);
  EXPECT_FALSE(acks.due(Time(0us)));
  EXPECT_EQ(acks.deadline(), Time(25us));
  acks.on_frame(Time(0us), Time(0us), {16}, true, AckScheduler::Urgency::none);
  EXPECT_TRUE(acks.due(Time(0us)));
  acks.on_ack_sent(Time(9us), true);
  EXPECT_FALSE(acks.owed());
  for (std::uint32_t i = 17; i <= 24; ++i)
    acks.on_frame(Time(9us), Time(9us), {i}, false, AckScheduler::Urgency::none);
  EXPECT_TRUE(acks.due(Time(9us)));
}

TEST(AckScheduler, DataSoonAfterALoneAcknowledgementCouldHaveCarriedIt) {
  for (const Duration later : {25us, 26us}) {
    AckScheduler acks(100us);
    acks.on_frame(Time(0us), Time(0us), {1}, true, AckScheduler::Urgency::soon);
    EXPECT_EQ(acks.deadline(), Time(10us));
    acks.on_ack_sent(Time(10us), true);
    acks.on_ack_sent(Time(10us) + later, false);
    const Time now = Time(50us);
    acks.on_frame(now, now, {2}, true, AckScheduler::Urgency::soon);
    EXPECT_EQ(acks.deadline(), later == 25us ? now + 10us : now);
  }
}

}  // namespace
}  // namespace cluster::reliability
