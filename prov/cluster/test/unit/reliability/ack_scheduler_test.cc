// When frames are acknowledged.
#include "reliability/ack_scheduler.h"

#include <gtest/gtest.h>

namespace cluster::reliability {
namespace {

TEST(AckScheduler, CountsFramesSinceTheLastAcknowledgement) {
  AckScheduler acks(25us);
  acks.on_frame(Time(0us), Time(0us), {44}, AckScheduler::Urgency::none, 44);
  EXPECT_FALSE(acks.due(Time(0us))) << "one super-frame is not enough";
  EXPECT_EQ(acks.deadline(), Time(25us));
  acks.on_frame(Time(0us), Time(0us), {65}, AckScheduler::Urgency::none, 21);
  EXPECT_FALSE(acks.due(Time(0us)));
  acks.on_frame(Time(0us), Time(0us), {66}, AckScheduler::Urgency::none);
  EXPECT_TRUE(acks.due(Time(0us)));
  acks.on_ack_sent(Time(9us), true);
  EXPECT_FALSE(acks.owed());
  acks.on_frame(Time(9us), Time(9us), {67}, AckScheduler::Urgency::none);
  EXPECT_FALSE(acks.due(Time(9us)));
}

TEST(AckScheduler, DataSoonAfterALoneAcknowledgementCouldHaveCarriedIt) {
  for (const Duration later : {25us, 26us}) {
    AckScheduler acks(100us);
    acks.on_frame(Time(0us), Time(0us), {1}, AckScheduler::Urgency::soon);
    EXPECT_EQ(acks.deadline(), Time(10us));
    acks.on_ack_sent(Time(10us), true);
    acks.on_ack_sent(Time(10us) + later, false);
    const Time now = Time(50us);
    acks.on_frame(now, now, {2}, AckScheduler::Urgency::soon);
    EXPECT_EQ(acks.deadline(), later == 25us ? now + 10us : now);
  }
}

}  // namespace
}  // namespace cluster::reliability
