// Messages of every size find their receives, complete and in order, and are completed once.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/failing_memory.h"
#include "support/messenger_pair.h"

namespace cluster::protocol {
namespace {

class MessengerSizes : public MessengerTest,
                       public testing::WithParamInterface<std::tuple<std::size_t, bool>> {};

TEST_P(MessengerSizes, ArriveIntactPostedAndUnexpected) {
  const auto [size, immediate] = GetParam();
  for (Side* const side : {&left, &right}) side->carrier.set_ring(immediate);
  shuffle = true;
  for (const bool posted : {true, false}) {
    const auto data = pattern(size);
    std::vector<std::byte> target(size + 10);
    int mark = 0;
    if (posted) {
      ASSERT_EQ(receive(right, target, 5, 0, &mark), Status::ok);
    }
    ASSERT_EQ(send(left, data, 5, &left), Status::ok);
    run();
    if (!posted) {
      ASSERT_EQ(receive(right, target, 5, 0, &mark), Status::ok);
      run();
    }
    const auto got = right.take();
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].status, Status::ok);
    EXPECT_EQ(got[0].length, size);
    EXPECT_EQ(got[0].context, &mark);
    EXPECT_EQ(got[0].source, 7u);
    EXPECT_TRUE(std::equal(data.begin(), data.end(), target.begin()));
    const auto sent = left.take();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].context, &left);
    EXPECT_EQ(left.sent.value(), posted ? 1u : 2u);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, MessengerSizes,
                         testing::Combine(testing::Values(0, 1, 8, 999, 1000, 1001, 4000, 4001, 70000,
                                                          256 * 1024, 256 * 1024 + 1, 3000001),
                                          testing::Bool()));

wire::Segment beginning(wire::SegmentKind kind, std::uint64_t tag) {
  wire::Segment segment;
  segment.kind = kind;
  segment.flags = wire::segment_flag::kTagged;
  segment.tag = tag;
  return segment;
}

TEST_F(MessengerTest, APeerThatHasFilledItsPartOfTheStoreIsHeldBack) {
  using wire::SegmentKind;
  settings.unexpected_max = 16;
  Side narrow(settings);
  Channel other;
  for (std::uint64_t tag = 0; tag < 2; ++tag) send(left, pattern(8), tag);
  carry(left, narrow);
  for (const SegmentKind kind : {SegmentKind::eager, SegmentKind::eager_first, SegmentKind::announce}) {
    EXPECT_FALSE(narrow.messenger.matcher().ready(narrow.channel, beginning(kind, 9)));
    EXPECT_TRUE(narrow.messenger.matcher().ready(other, beginning(kind, 9))) << "others have capacity";
  }
  for (const SegmentKind kind : {SegmentKind::eager_next, SegmentKind::pull, SegmentKind::write}) {
    EXPECT_TRUE(narrow.messenger.matcher().ready(narrow.channel, beginning(kind, 0)));
  }
  std::byte target[8];
  receive(narrow, target, 9);
  EXPECT_TRUE(narrow.messenger.matcher().ready(narrow.channel, beginning(SegmentKind::eager, 9)));
  EXPECT_FALSE(narrow.messenger.matcher().ready(narrow.channel, beginning(SegmentKind::eager, 8)));
  receive(narrow, target, 0);
  EXPECT_TRUE(narrow.messenger.matcher().ready(narrow.channel, beginning(SegmentKind::eager, 8)));
}

TEST_F(MessengerTest, APeerThatIsWaitedForIsNotHeldBack) {
  settings.unexpected_max = 16;
  settings.unexpected_hard_max = 3;
  Side narrow(settings);
  for (std::uint64_t tag = 0; tag < 2; ++tag) send(left, pattern(8), tag);
  carry(left, narrow);
  ASSERT_FALSE(narrow.messenger.matcher().ready(narrow.channel, beginning(wire::SegmentKind::eager, 9)));
  ASSERT_EQ(send(narrow, pattern(8), 1, nullptr, CompletionLevel::delivery), Status::ok);
  EXPECT_TRUE(narrow.messenger.matcher().ready(narrow.channel, beginning(wire::SegmentKind::eager, 9)));
  send(left, pattern(8), 2);
  carry(left, narrow);
  EXPECT_FALSE(narrow.messenger.matcher().ready(narrow.channel, beginning(wire::SegmentKind::eager, 9)))
      << "not without end";
}

TEST_F(MessengerTest, BytesFillTheStoreAsMessagesDo) {
  settings.unexpected_bytes_max = 8000;
  Side narrow(settings);
  for (std::uint64_t tag = 0; tag < 2; ++tag) send(left, pattern(4000), tag);
  carry(left, narrow);
  EXPECT_FALSE(narrow.messenger.matcher().ready(narrow.channel, beginning(wire::SegmentKind::eager, 9)));
  std::vector<std::byte> target(4000);
  receive(narrow, target, 0);
  EXPECT_TRUE(narrow.messenger.matcher().ready(narrow.channel, beginning(wire::SegmentKind::eager, 9)));
}

TEST_F(MessengerTest, UnknownSourcesGetHalfOfTheStore) {
  settings.unexpected_bytes_max = 8000;
  Side narrow(settings);
  send(left, pattern(4000), 0);
  carry(left, narrow);
  EXPECT_TRUE(narrow.messenger.matcher().ready(narrow.channel, beginning(wire::SegmentKind::eager, 9)));
  narrow.handles.handle = kAddrNotAvail;
  EXPECT_FALSE(narrow.messenger.matcher().ready(narrow.channel, beginning(wire::SegmentKind::eager, 9)));
}

TEST_F(MessengerTest, MessagesBeyondTheHardLimitAreRefused) {
  settings.unexpected_hard_max = 2;
  Side narrow(settings);
  for (std::uint64_t tag = 0; tag < 4; ++tag) send(left, pattern(tag < 3 ? 8 : 5000), tag);
  carry(left, narrow);
  EXPECT_EQ(narrow.counters.unexpected, 2u);
  EXPECT_EQ(narrow.counters.refused_segment, 2u) << "a small and a large one";
}

TEST_F(MessengerTest, MatchesInPostingOrderWildcardAndDirectedAlike) {
  std::byte a[8], b[8], c[8];
  int first, second, third;
  receive(right, a, 1, ~0ull, &first);     // anything
  receive(right, b, 5, 0, &second, true);  // tag 5 from left
  receive(right, c, 5, 0, &third);
  for (int i = 0; i < 3; ++i) send(left, pattern(8), 5);
  run();
  const auto got = right.take();
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(got[0].context, &first);
  EXPECT_EQ(got[1].context, &second);
  EXPECT_EQ(got[2].context, &third);
}

TEST_F(MessengerTest, UnexpectedAreTakenInArrivalOrderThroughIgnoreMasks) {
  for (unsigned i = 0; i < 5; ++i) send(left, pattern(i + 1), 0x10 + i);
  run();
  std::vector<std::byte> target(16);
  receive(right, target, 0x13, 0);
  receive(right, target, 0x10, 0xf);
  receive(right, target, 0x10, 0xf);
  const auto got = right.take();
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(got[0].tag, 0x13u);
  EXPECT_EQ(got[1].tag, 0x10u);
  EXPECT_EQ(got[2].tag, 0x11u);
}

TEST_F(MessengerTest, AnnouncedAndEagerKeepTheirOrder) {
  const auto big = pattern(100000, 1);
  const auto small = pattern(8, 2);
  send(left, big, 5);
  send(left, small, 5);
  std::vector<std::byte> first(100000), second(100000);
  receive(right, first, 5);
  receive(right, second, 5);
  run();
  EXPECT_EQ(first, big);
  EXPECT_TRUE(std::equal(small.begin(), small.end(), second.begin()));
}

TEST_F(MessengerTest, TruncatedReceiveSaysWhatIsLostAndTheSenderSucceeds) {
  for (const std::size_t size : {100u, 3000u, 100000u}) {
    std::vector<std::byte> target(40);
    receive(right, target, 1);
    send(left, pattern(size), 1);
    run();
    const auto got = right.take();
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].status, Status::truncated);
    EXPECT_EQ(got[0].length, 40u);
    EXPECT_EQ(got[0].lost, size - 40);
    const auto sent = left.take();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].status, Status::ok);
  }
}

TEST_F(MessengerTest, DeliveryCompleteWaitsForTheReceiver) {
  for (Side* const side : {&left, &right}) side->carrier.set_ring(true);
  send(left, pattern(8), 1, nullptr, CompletionLevel::delivery);
  EXPECT_TRUE(left.take().empty());
  run();
  EXPECT_EQ(left.take().size(), 1u);
}

TEST_F(MessengerTest, TransmitCompleteWaitsForTheCarrier) {
  send(left, pattern(8), 1);
  EXPECT_TRUE(left.take().empty());
  carry(left, right);
  EXPECT_EQ(left.take().size(), 1u);
}

TEST_F(MessengerTest, CreditBoundsWhatIsStoredAndNothingIsLost) {
  const auto data = pattern(1000);
  left.carrier.capacity = 100000;
  std::size_t posted = 0;
  while (posted < 400 && send(left, data, posted, nullptr, CompletionLevel::inject) == Status::ok) {
    ++posted;
    run();
  }
  EXPECT_LT(left.counters.eager_sent, 260u);  // 256 KiB of credit at 1064 a message
  EXPECT_GT(left.counters.eager_sent, 200u);
  EXPECT_EQ(posted, left.counters.eager_sent + settings.tx_requests_max);  // the rest waits here
  std::vector<std::byte> target(1000);
  for (std::size_t i = 0; i < posted; ++i) {
    std::fill(target.begin(), target.end(), std::byte{0});
    ASSERT_EQ(receive(right, target, i), Status::ok);
    run();
    ASSERT_EQ(target, data) << i;
  }
  EXPECT_EQ(right.take().size(), posted);
  EXPECT_EQ(left.take().size(), posted);
  ASSERT_EQ(send(left, data, 1), Status::ok);  // credit has come back
  run();
  EXPECT_EQ(left.counters.rendezvous_sent, settings.tx_requests_max);
}

TEST_F(MessengerTest, InjectedBytesAreCopiedWhenTheCarrierIsFull) {
  left.carrier.capacity = 0;
  auto data = pattern(64);
  const auto original = data;
  const ConstBytes slices[] = {data};
  SendOp order{.slices = slices, .length = data.size()};
  order.inject = true;
  order.report = false;
  order.completion_level = CompletionLevel::inject;
  ASSERT_EQ(left.messenger.send(left.channel, order), Status::ok);
  std::fill(data.begin(), data.end(), std::byte{0});
  left.carrier.capacity = 10;
  std::vector<std::byte> target(64);
  const Bytes targets[] = {target};
  right.messenger.matcher().receive(nullptr, {.slices = targets});
  run();
  EXPECT_EQ(target, original);
  EXPECT_TRUE(left.take().empty());
}

TEST_F(MessengerTest, AnInjectedMessageThatIsLostIsAnErrorAndNoSuccess) {
  const auto data = pattern(64);
  const ConstBytes slices[] = {data};
  SendOp order{.slices = slices, .length = data.size()};
  order.inject = true;
  order.report = false;
  for (const CompletionLevel level : {CompletionLevel::inject, CompletionLevel::transmit}) {
    order.completion_level = level;
    left.channel.carrier = &left.carrier;
    ASSERT_EQ(left.messenger.send(left.channel, order), Status::ok);
    EXPECT_EQ(left.sent.value(), 0u);
    left.carrier.items.clear();
    left.messenger.fail(left.channel, Status::unreachable, true);
    const auto completions = left.take();
    ASSERT_EQ(completions.size(), 1u);
    EXPECT_EQ(completions[0].status, Status::unreachable);
    EXPECT_EQ(completions[0].context, nullptr);
  }
  EXPECT_EQ(left.sent.errors(), 2u);
  left.channel.carrier = &left.carrier;
  ASSERT_EQ(left.messenger.send(left.channel, order), Status::ok);
  run();
  EXPECT_EQ(left.sent.value(), 1u);
  EXPECT_TRUE(left.take().empty());
  left.carrier.set_ring(true);
  ASSERT_EQ(left.messenger.send(left.channel, order), Status::ok);
  EXPECT_EQ(left.sent.value(), 2u) << "memory that the peer reads loses nothing";
  EXPECT_FALSE(left.messenger.under_way());
}

TEST_F(MessengerTest, NarrowCarrierOnlyDelays) {
  left.carrier.capacity = right.carrier.capacity = 1;
  std::vector<std::vector<std::byte>> targets;
  for (unsigned i = 0; i < 40; ++i) {
    const std::size_t size = i * 700;
    targets.emplace_back(size);
    ASSERT_EQ(receive(right, targets.back(), i), Status::ok);
  }
  std::vector<std::vector<std::byte>> data;
  for (unsigned i = 0; i < 40; ++i) {
    data.push_back(pattern(i * 700, i));
    ASSERT_EQ(send(left, data.back(), i), Status::ok);
  }
  run();
  EXPECT_EQ(targets, data);
}

/// base/end_of_memory.h: what a call has changed when it is refused would be reported by nobody, or twice.
TEST_F(MessengerTest, AnOperationWithoutMemoryIsRefusedWholeOrEndsWithAnError) {
  std::vector<std::byte> bytes = pattern(100);
  const ConstBytes sources[] = {bytes};
  const Bytes targets[] = {bytes};
  const RmaIov remote[] = {{0, 1, 60}, {100, 1, 40}};
  const auto send = [&](Side& side) {
    return side.messenger.send(side.channel, {.slices = sources, .length = bytes.size(), .inject = true});
  };
  const auto write = [&](Side& side) {
    WriteOp op;
    op.slices = sources;
    op.remote = remote;
    op.length = bytes.size();
    op.inject = true;
    return side.messenger.rma().write(side.channel, op);
  };
  const auto read = [&](Side& side) {
    ReadOp op;
    op.slices = targets;
    op.remote = remote;
    op.length = bytes.size();
    return side.messenger.rma().read(side.channel, op);
  };
  const auto check = [&](const char* what, const auto& post) {
    std::size_t refused = 0;
    for (std::size_t allowed = 0;; ++allowed) {
      SCOPED_TRACE(std::string(what) + " " + std::to_string(allowed));
      Side side(settings);
      side.carrier.capacity = 0;
      bool accepted = false;
      bool failed = false;
      {
        const test::FailingMemory memory(allowed, 1);
        try {
          accepted = post(side) == Status::ok;
        } catch (const std::bad_alloc&) {
          ++refused;
        }
        failed = test::FailingMemory::failed() != 0;
      }
      EXPECT_TRUE(accepted || !side.messenger.under_way());
      side.messenger.fail(side.channel, Status::unreachable, true);
      EXPECT_EQ(side.take().size(), accepted ? 1u : 0u);
      if (!failed) break;
    }
    EXPECT_GT(refused, 0u) << what;
  };
  check("send", send);
  check("write", write);
  check("read", read);
}

}  // namespace
}  // namespace cluster::protocol
