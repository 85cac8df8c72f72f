// When frames are acknowledged, and what a frame says about the peer's frames: how much fits, and the age of the newest arrival.
#include "reliability/outgoing_ack.h"

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

struct OutgoingAckTest : testing::Test {
  /// A frame of the peer arrives: `s` is its sequence, its transmission number one more.
  void arrive(std::uint32_t s, Time at = Time(1us)) { arrive_again(s, s + 1, at); }
  void arrive_again(std::uint32_t s, std::uint32_t transmission, Time at = Time(1us)) {
    const std::byte content{1};
    window.arrive({s}, {transmission}, false, {&content, 1});
    ConstBytes segments;
    while (window.next(segments)) continue;
    acks.on_frame(at, at, {transmission}, AckScheduler::Urgency::none);
  }
  OutgoingAck made(Time now = Time(1us)) const { return {now, acks, window}; }
  static std::uint16_t delay_of(const OutgoingAck& ack) {
    wire::FrameHeader header{};
    ack.write(header);
    return header.ack_delay;
  }

  ReceiveWindow window{64};
  AckScheduler acks{25us};
};

TEST_F(OutgoingAckTest, NothingBeforeAFrameHasArrived) {
  EXPECT_EQ(made().fit(1000, true).included, AckIncluded::none);
}

TEST_F(OutgoingAckTest, TheHeaderIsEnoughWithoutAGap) {
  arrive(0);
  arrive(1);
  const OutgoingAck ack = made();
  EXPECT_EQ(ack.fit(0, false).included, AckIncluded::header);
  wire::FrameHeader header{};
  ack.write(header);
  EXPECT_EQ(header.ack, 2u);
  EXPECT_EQ(header.largest_acked, 2u);
}

TEST_F(OutgoingAckTest, AGapNeedsItsRanges) {
  arrive(0);
  arrive(2);
  const OutgoingAck::Fit fit = made().fit(1000, false);
  EXPECT_EQ(fit.included, AckIncluded::block);
  EXPECT_EQ(fit.block_bytes, wire::ack_block_size(1));
  EXPECT_EQ(made().fit(fit.block_bytes, false).included, AckIncluded::block);
  EXPECT_EQ(made().fit(fit.block_bytes - 1, false).included, AckIncluded::none)
      << "without the ranges it would say that frame 2 is missing";
}

TEST_F(OutgoingAckTest, SpuriousRetransmissionsAreSaidOnceAndWhereThereIsSpace) {
  arrive(0);
  arrive_again(0, 7);
  EXPECT_EQ(made().spurious(), 1u);
  EXPECT_EQ(made().fit(1000, false).included, AckIncluded::block);
  EXPECT_EQ(made().fit(0, false).included, AckIncluded::header) << "they are no reason to withhold the rest";
  acks.set_spurious_reported(1);
  EXPECT_EQ(made().fit(1000, false).included, AckIncluded::header);
  EXPECT_EQ(made().fit(1000, true).included, AckIncluded::block) << "the frame is empty anyway";
}

TEST_F(OutgoingAckTest, SaysHowOldTheNewestArrivalIsWhenTheFrameLeaves) {
  arrive(5, Time(10us));
  arrive(4, Time(90us));
  OutgoingAck ack = made(Time(10us));
  EXPECT_EQ(delay_of(ack), 0);
  ack.set_departure(Time(10us) + 10240ns);
  EXPECT_EQ(delay_of(ack), 10);
  ack.set_departure(Time(10s));
  EXPECT_EQ(delay_of(ack), 65535);
  ack.set_departure(Time(9us));
  EXPECT_EQ(delay_of(ack), 0);
  acks.on_frame(Time(5ms), Time(1ms), {7}, AckScheduler::Urgency::none);
  EXPECT_EQ(delay_of(made(Time(1ms) + 4096us)), 4000) << "from when it came, not from when it was read";
}

}  // namespace
}  // namespace cluster::reliability
