// Control segments and eager credit on one channel: segments that a full carrier refuses are kept and posted
// first, and credit is advertised in steps.
#include "protocol/control_sender.h"

#include <gtest/gtest.h>

#include <new>

#include "support/failing_memory.h"
#include "support/queue_carrier.h"

namespace cluster::protocol {
namespace {

struct ControlSenderTest : testing::Test {
  struct FixedHandle final : AddressHandles {
    std::uint64_t handle_of(const Channel&) override { return kAddrNotAvail; }
    bool is_member(const Channel&) override { return true; }
    void lose(const Channel&) override { ++lost; }
    int lost = 0;
  } handles;
  Counters counters;
  Context context{{.eager_credit = 1000}, counters, handles};
  ControlSender control{context};
  test::QueueCarrier carrier;
  Channel channel;

  ControlSenderTest() { channel.carrier = &carrier; }
  std::size_t pending() {
    std::size_t count = 0;
    control.take_pending([&](Channel&) { ++count; });
    return count;
  }
};

TEST_F(ControlSenderTest, KeepsWhatTheCarrierDoesNotTakeInOrder) {
  carrier.capacity = 1;
  for (std::uint32_t id = 1; id <= 3; ++id) control.send_done(channel, id);
  EXPECT_TRUE(channel.busy());
  EXPECT_EQ(pending(), 1u) << "once per channel";
  for (std::uint32_t id = 1; id <= 3; ++id) {
    ASSERT_EQ(carrier.items.size(), 1u);
    EXPECT_EQ(carrier.items.front().segment.id, id);
    carrier.items.clear();
    control.pump_busy([](Channel& busy) { return ControlSender::flush(busy); });
  }
  EXPECT_FALSE(control.busy());
  EXPECT_FALSE(channel.busy());
}

TEST_F(ControlSenderTest, WhereThereIsNoMemoryThePeerIsLostAndNothingIsThrown) {
  const test::FailingMemory memory(0);
  EXPECT_NO_THROW(control.mark_busy(channel));
  carrier.capacity = 0;
  EXPECT_NO_THROW(control.send_done(channel, 1));
  EXPECT_GE(handles.lost, 2);
  EXPECT_FALSE(control.busy() || control.pending());
}

TEST_F(ControlSenderTest, AChannelThatIsPumpedWithoutMemoryLosesItsPeerAlone) {
  Channel other;
  control.mark_busy(channel);
  control.mark_busy(other);
  std::size_t pumped = 0;
  const auto pump = [&](Channel& busy) {
    ++pumped;
    if (&busy == &channel) throw std::bad_alloc();
    return false;
  };
  EXPECT_NO_THROW(control.pump_busy(pump));
  EXPECT_EQ(handles.lost, 1);
  EXPECT_NO_THROW(control.pump_busy(pump));
  EXPECT_EQ(pumped, 3u) << "the other is busy as before";
}

TEST_F(ControlSenderTest, SendsNothingToALostPeerAndKeepsABoundedNumber) {
  channel.carrier = nullptr;
  control.send_done(channel, 1);
  EXPECT_FALSE(control.busy() || control.pending());
  channel.carrier = &carrier;
  carrier.capacity = 0;
  for (std::uint32_t id = 0; id < kControlMax + 5; ++id) control.send_failed(channel, id);
  EXPECT_EQ(channel.tx.control.size(), kControlMax);
  EXPECT_EQ(counters.refused_segment, 5u);
}

TEST_F(ControlSenderTest, IsBusyForThoseChannelsThatCount) {
  carrier.capacity = 0;
  control.send_done(channel, 1);
  EXPECT_TRUE(control.busy());
  EXPECT_TRUE(control.busy([&](const Channel& each) { return &each == &channel; }));
  EXPECT_FALSE(control.busy([&](const Channel& each) { return &each != &channel; }));
}

TEST_F(ControlSenderTest, AnImmediateCarrierNeedsNoTransmission) {
  carrier.set_ring(true);
  control.send_done(channel, 1);
  EXPECT_FALSE(control.pending());
}

TEST_F(ControlSenderTest, CreditIsAdvertisedInSteps) {
  channel.credit.granted = 1000;
  EXPECT_TRUE(channel.credit.allows(900));
  channel.credit.accept(900);
  EXPECT_FALSE(channel.credit.allows(900)) << "more than was granted";
  EXPECT_FALSE(channel.credit.allows(~std::uint64_t{0})) << "nor by overflow";
  control.release(channel, 200);
  EXPECT_TRUE(carrier.items.empty());
  control.release(channel, 50);
  ASSERT_EQ(carrier.items.size(), 1u);
  EXPECT_EQ(carrier.items.front().segment.kind, wire::SegmentKind::credit);
  EXPECT_EQ(carrier.items.front().segment.total, 1250u);
}

TEST_F(ControlSenderTest, TheLargestCreditHolds) {
  channel.credit.limit = 500;
  EXPECT_TRUE(channel.credit.covers(500 - kMessageCharge));
  EXPECT_FALSE(channel.credit.covers(501 - kMessageCharge));
  wire::Segment segment;
  for (const std::uint64_t limit : {900u, 700u}) {
    segment.total = limit;
    channel.credit.raise(segment.total);
  }
  channel.credit.charge(900 - 2 * kMessageCharge);
  EXPECT_TRUE(channel.credit.covers(0));
  EXPECT_FALSE(channel.credit.covers(1));
}

}  // namespace
}  // namespace cluster::protocol
