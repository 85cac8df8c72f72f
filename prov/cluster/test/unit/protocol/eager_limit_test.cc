// Which messages are eager, and the turns of bulk beside them.
#include <gtest/gtest.h>

#include "support/messenger_pair.h"

namespace cluster::protocol {
namespace {

constexpr std::size_t kLong = 20000;

class EagerLimitTest : public MessengerTest {
 protected:
  EagerLimitTest() { left.channel.eager_max = 64 * 1024; }
  bool announced(std::size_t length) {
    const auto before = left.counters.rendezvous_sent;
    EXPECT_EQ(send(left, pattern(length), 1), Status::ok);
    left.carrier.items.clear();
    return left.counters.rendezvous_sent != before;
  }
};

TEST_F(EagerLimitTest, IsTheLimitOfTheCarrier) {
  left.carrier.eager_max = kLong;
  EXPECT_FALSE(announced(kLong));
  EXPECT_TRUE(announced(kLong + 1));
  left.carrier.eager_max = 0;
  EXPECT_TRUE(announced(kLong));
  EXPECT_FALSE(announced(kAlwaysEager)) << "whatever the carrier's limit";
  EXPECT_TRUE(announced(kAlwaysEager + 1));
}

TEST_F(EagerLimitTest, IsTheOptionOfTheEndpoint) {
  EXPECT_FALSE(announced(64 * 1024));
  EXPECT_TRUE(announced(64 * 1024 + 1));
  left.channel.eager_max = 1000;
  EXPECT_FALSE(announced(1000));
  EXPECT_TRUE(announced(1001));
}

/// The target waits for the rest of a write that has begun.
TEST_F(EagerLimitTest, AWriteThatHasBegunIsNotAnnounced) {
  left.carrier.capacity = 5;
  const std::vector<std::byte> bytes = pattern(kLong);
  const RmaIov remote[] = {{0, 1, kLong}};
  ASSERT_EQ(write(bytes, remote), Status::ok);
  left.carrier.eager_max = 0;
  std::size_t sent = 0;
  for (int turn = 0; turn < 10 && sent < kLong; ++turn) {
    for (const QueueCarrier::Item& item : left.carrier.items) {
      EXPECT_NE(item.segment.kind, wire::SegmentKind::write_announce);
      sent += item.payload.size();
    }
    left.carrier.items.clear();
    left.messenger.pump();
  }
  EXPECT_EQ(sent, kLong);
}

/// Bulk could otherwise wait as long as messages follow each other.
TEST_F(EagerLimitTest, AStreamOfLongMessagesLetsBulkThrough) {
  constexpr std::size_t kBulk = 200'000;
  left.carrier.capacity = 8;
  const std::vector<std::byte> bytes = pattern(kBulk);
  std::vector<std::byte> pulled(kBulk);
  int bulk_receive = 0;
  ASSERT_EQ(receive(right, pulled, 7, 0, &bulk_receive), Status::ok);
  ASSERT_EQ(send(left, bytes, 7), Status::ok);
  std::vector<std::byte> place(kLong);
  std::size_t begun = 0;
  std::size_t messages = 0;
  bool here = false;
  for (int turn = 0; turn < 2000 && !here; ++turn) {
    for (; begun < messages + 4; ++begun) {
      ASSERT_EQ(receive(right, place, 9), Status::ok);
      ASSERT_EQ(send(left, pattern(kLong), 9), Status::ok);
    }
    left.messenger.pump();
    carry(left, right);
    right.messenger.pump();
    carry(right, left);
    for (const Completion& done : right.take()) {
      here |= done.context == &bulk_receive;
      messages += done.context != &bulk_receive;
    }
    left.take();
  }
  EXPECT_TRUE(here);
  EXPECT_EQ(pulled, bytes);
  EXPECT_GE(messages, 2u) << "and the other way round";
}

}  // namespace
}  // namespace cluster::protocol
