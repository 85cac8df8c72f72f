// Two messengers joined by queues: every path of a message, both ends, without any network.
#include "protocol/messenger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "support/queue_carrier.h"

namespace cluster::protocol {
namespace {

using test::QueueCarrier;

struct NoDirectory final : Directory {
  std::uint64_t handle_of(const Channel&) override { return 7; }
};

struct Side {
  Counters counters;
  NoDirectory directory;
  CompletionQueue completions;
  Counter sent;
  Messenger messenger;
  Channel channel;
  QueueCarrier carrier;

  explicit Side(const MessengerSettings& settings) : messenger(settings, counters, directory) {
    messenger.attach({&completions, &completions, &sent, nullptr, true});
    channel.carrier = &carrier;
    channel.eager_max = 4000;
  }

  std::vector<Completion> take() {
    std::vector<Completion> taken;
    completions.drain(
        ~std::size_t{0}, [](const Completion&) { return true; },
        [&](const Completion& completion) { taken.push_back(completion); });
    return taken;
  }
};

class MessengerTest : public testing::Test {
 protected:
  MessengerSettings settings{.send_requests_max = 64, .eager_credit = kFirstCredit, .pull_window = 512 * 1024};
  Side left{settings};
  Side right{settings};
  bool shuffle = false;
  std::mt19937 dice{1};

  /// Carries what `from` has queued to `to`. Unordered segments may overtake if `shuffle` is set.
  void carry(Side& from, Side& to) {
    while (!from.carrier.items.empty()) {
      auto next = from.carrier.items.begin();
      if (shuffle) {
        for (auto it = next; it != from.carrier.items.end(); ++it) {
          if (!wire::ordered(it->segment.kind) && dice() % 2 == 0) next = it;
        }
      }
      const QueueCarrier::Item item = std::move(*next);
      from.carrier.items.erase(next);
      to.messenger.arrive(to.channel, item.segment, item.payload);
      if (item.token != 0) from.messenger.delivered(item.token);
    }
  }

  void run() {
    for (int turn = 0; turn < 10000; ++turn) {
      left.messenger.pump();
      right.messenger.pump();
      if (left.carrier.items.empty() && right.carrier.items.empty()) return;
      carry(left, right);
      carry(right, left);
    }
    FAIL() << "the two never come to rest";
  }

  static std::vector<std::byte> pattern(std::size_t size, unsigned seed = 1) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 + seed * 7 + (i >> 8));
    return bytes;
  }

  Fault send(Side& side, ConstBytes bytes, std::uint64_t tag, void* context = nullptr,
             Promise promise = Promise::transmitted) {
    const ConstBytes slices[] = {bytes};
    SendOrder order{.slices = slices, .length = bytes.size(), .context = context};
    order.tagged = true;
    order.tag = tag;
    order.promise = promise;
    return side.messenger.send(side.channel, order);
  }

  Fault receive(Side& side, Bytes bytes, std::uint64_t tag, std::uint64_t ignore = 0, void* context = nullptr,
                bool directed = false) {
    const Bytes slices[] = {bytes};
    ReceiveOrder order{.slices = slices, .context = context, .tag = tag, .ignore = ignore, .tagged = true};
    return side.messenger.receive(directed ? &side.channel : nullptr, order);
  }

  void peek(Side& side, std::uint64_t tag, Peek kind, void* context) {
    ReceiveOrder order{.slices = {}, .context = context, .tag = tag, .tagged = true};
    order.peek = kind;
    EXPECT_EQ(side.messenger.receive(nullptr, order), Fault::none);
  }
};

class MessengerSizes : public MessengerTest, public testing::WithParamInterface<std::tuple<std::size_t, bool>> {};

TEST_P(MessengerSizes, ArriveIntactPostedAndUnexpected) {
  const auto [size, immediate] = GetParam();
  left.carrier.at_once = right.carrier.at_once = immediate;
  shuffle = true;
  for (const bool posted : {true, false}) {
    const auto data = pattern(size);
    std::vector<std::byte> target(size + 10);
    int mark = 0;
    if (posted) {
      ASSERT_EQ(receive(right, target, 5, 0, &mark), Fault::none);
    }
    ASSERT_EQ(send(left, data, 5, &left), Fault::none);
    run();
    if (!posted) {
      ASSERT_EQ(receive(right, target, 5, 0, &mark), Fault::none);
      run();
    }
    const auto got = right.take();
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].fault, Fault::none);
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
                         testing::Combine(testing::Values(0, 1, 8, 999, 1000, 1001, 4000, 4001, 70000, 256 * 1024,
                                                          256 * 1024 + 1, 3000001),
                                          testing::Bool()));

TEST_F(MessengerTest, MatchesInPostingOrderWildcardAndDirectedAlike) {
  std::byte a[8], b[8], c[8];
  int first, second, third;
  receive(right, a, 1, ~0ull, &first);        // anything
  receive(right, b, 5, 0, &second, true);     // tag 5 from left
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
    EXPECT_EQ(got[0].fault, Fault::truncated);
    EXPECT_EQ(got[0].length, 40u);
    EXPECT_EQ(got[0].lost, size - 40);
    const auto sent = left.take();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].fault, Fault::none);
  }
}

TEST_F(MessengerTest, DeliveredWaitsForTheReceiversWord) {
  left.carrier.at_once = right.carrier.at_once = true;
  send(left, pattern(8), 1, nullptr, Promise::delivered);
  EXPECT_TRUE(left.take().empty());
  run();
  EXPECT_EQ(left.take().size(), 1u);
}

TEST_F(MessengerTest, TransmittedWaitsForTheCarrier) {
  send(left, pattern(8), 1);
  EXPECT_TRUE(left.take().empty());
  carry(left, right);
  EXPECT_EQ(left.take().size(), 1u);
}

TEST_F(MessengerTest, CreditBoundsWhatIsStoredAndNothingIsLost) {
  const auto data = pattern(1000);
  left.carrier.room = 100000;
  std::size_t posted = 0;
  while (posted < 400 && send(left, data, posted, nullptr, Promise::buffer_free) == Fault::none) {
    ++posted;
    run();
  }
  EXPECT_LT(left.counters.eager_sent, 260u);   // 256 KiB of credit at 1064 a message
  EXPECT_GT(left.counters.eager_sent, 200u);
  EXPECT_EQ(posted, left.counters.eager_sent + settings.send_requests_max);  // the rest waits here
  std::vector<std::byte> target(1000);
  for (std::size_t i = 0; i < posted; ++i) {
    std::fill(target.begin(), target.end(), std::byte{0});
    ASSERT_EQ(receive(right, target, i), Fault::none);
    run();
    ASSERT_EQ(target, data) << i;
  }
  EXPECT_EQ(right.take().size(), posted);
  EXPECT_EQ(left.take().size(), posted);
  ASSERT_EQ(send(left, data, 1), Fault::none);  // credit has come back
  run();
  EXPECT_EQ(left.counters.rendezvous_sent, settings.send_requests_max);
}

TEST_F(MessengerTest, InjectedBytesAreKeptWhenThereIsNoRoom) {
  left.carrier.room = 0;
  auto data = pattern(64);
  const auto original = data;
  const ConstBytes slices[] = {data};
  SendOrder order{.slices = slices, .length = data.size()};
  order.inject = true;
  order.report = false;
  order.promise = Promise::buffer_free;
  ASSERT_EQ(left.messenger.send(left.channel, order), Fault::none);
  std::fill(data.begin(), data.end(), std::byte{0});
  left.carrier.room = 10;
  std::vector<std::byte> target(64);
  const Bytes targets[] = {target};
  right.messenger.receive(nullptr, {.slices = targets});
  run();
  EXPECT_EQ(target, original);
  EXPECT_TRUE(left.take().empty());
}

TEST_F(MessengerTest, NarrowCarrierOnlyDelays) {
  left.carrier.room = right.carrier.room = 1;
  std::vector<std::vector<std::byte>> targets;
  for (unsigned i = 0; i < 40; ++i) {
    const std::size_t size = i * 700;
    targets.emplace_back(size);
    ASSERT_EQ(receive(right, targets.back(), i), Fault::none);
  }
  std::vector<std::vector<std::byte>> data;
  for (unsigned i = 0; i < 40; ++i) {
    data.push_back(pattern(i * 700, i));
    ASSERT_EQ(send(left, data.back(), i), Fault::none);
  }
  run();
  EXPECT_EQ(targets, data);
}

TEST_F(MessengerTest, PeekLooksClaimsAndDiscards) {
  int nothing, look, claim, later, gone;
  peek(right, 9, Peek::look, &nothing);
  send(left, pattern(3000), 9);
  send(left, pattern(50000), 9);
  run();
  peek(right, 9, Peek::look, &look);
  peek(right, 9, Peek::claim, &claim);
  std::vector<std::byte> target(50000);
  receive(right, target, 9, 0, &later);  // must get the second one: the first is claimed
  run();
  ReceiveOrder take{.slices = {}, .context = &claim, .tagged = true};
  const Bytes slices[] = {target};
  take.slices = slices;
  take.take_claimed = true;
  ASSERT_EQ(right.messenger.receive(nullptr, take), Fault::none);
  peek(right, 9, Peek::look, &gone);
  const auto got = right.take();
  ASSERT_EQ(got.size(), 6u);
  EXPECT_EQ(got[0].fault, Fault::no_message);
  EXPECT_EQ(got[0].context, &nothing);
  EXPECT_EQ(got[1].length, 3000u);
  EXPECT_EQ(got[2].length, 3000u);
  EXPECT_EQ(got[3].length, 50000u);
  EXPECT_EQ(got[3].context, &later);
  EXPECT_EQ(got[4].context, &claim);
  EXPECT_EQ(got[4].length, 3000u);
  EXPECT_EQ(got[5].fault, Fault::no_message);
  EXPECT_EQ(right.messenger.receive(nullptr, take), Fault::no_message);
}

TEST_F(MessengerTest, DiscardedMessagesStillCompleteAtTheSender) {
  int context;
  for (const std::size_t size : {8u, 3000u, 50000u}) {
    send(left, pattern(size), 9, nullptr, Promise::delivered);
    run();
    peek(right, 9, Peek::discard, &context);
    run();
    EXPECT_EQ(left.take().size(), 1u) << size;
    ASSERT_EQ(right.take().size(), 1u);
    peek(right, 9, Peek::look, &context);
    EXPECT_EQ(right.take()[0].fault, Fault::no_message);
  }
}

TEST_F(MessengerTest, CancelTakesOneWaitingReceive) {
  std::byte target[8];
  int one, two;
  receive(right, target, 1, 0, &one);
  receive(right, target, 1, 0, &two);
  EXPECT_TRUE(right.messenger.cancel(&one));
  EXPECT_FALSE(right.messenger.cancel(&one));
  send(left, pattern(8), 1);
  run();
  const auto got = right.take();
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].fault, Fault::canceled);
  EXPECT_EQ(got[1].context, &two);
  EXPECT_FALSE(right.messenger.cancel(&two));
}

TEST_F(MessengerTest, LossOfThePeerEndsEverythingUnderWayAndNothingElse) {
  std::vector<std::byte> big(500000), small(8);
  int pulling, directed, anyone;
  receive(right, big, 1, 0, &pulling);
  receive(right, small, 2, 0, &directed, true);
  receive(right, small, 3, 0, &anyone);
  send(left, pattern(500000), 1, &left);
  send(left, pattern(8), 77);
  carry(left, right);
  right.carrier.items.clear();
  right.messenger.fail(right.channel, Fault::reset, true);
  left.messenger.fail(left.channel, Fault::unreachable, true);
  auto got = right.take();
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].context, &pulling);
  EXPECT_EQ(got[0].fault, Fault::reset);
  EXPECT_EQ(got[1].context, &directed);
  auto sent = left.take();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].fault, Fault::none);         // the eager one had arrived
  EXPECT_EQ(sent[1].fault, Fault::unreachable);
  EXPECT_EQ(sent[1].context, &left);
  // The next life works, and what had arrived whole is still there.
  left.channel.carrier = &left.carrier;
  right.channel.carrier = &right.carrier;
  left.carrier.items.clear();
  receive(right, small, 77);
  ASSERT_EQ(right.take().size(), 1u);
  send(left, pattern(8), 3);
  run();
  got = right.take();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].context, &anyone);
}

TEST_F(MessengerTest, SegmentsThatMakeNoSenseAreCountedAndChangeNothing) {
  const auto bytes = pattern(100);
  const auto say = [&](wire::Segment segment, std::size_t length) {
    segment.length = static_cast<std::uint32_t>(length);
    right.messenger.arrive(right.channel, segment, ConstBytes(bytes).first(length));
  };
  wire::Segment next{.kind = wire::SegmentKind::eager_next};
  say(next, 10);                                              // no message begun
  wire::Segment first{.kind = wire::SegmentKind::eager_first};
  first.total = 5;
  say(first, 10);                                             // longer than it says
  first.total = 1ull << 40;
  say(first, 10);                                             // beyond all credit
  say({.kind = wire::SegmentKind::bulk, .peer_id = 12345}, 10);
  say({.kind = wire::SegmentKind::done, .id = 999}, 0);
  say({.kind = wire::SegmentKind::pull, .id = 999, .peer_id = 1, .offset = 0, .total = 10}, 0);
  EXPECT_EQ(right.counters.refused_segment, 6u);
  // A pull beyond the end of a real message, and too many of them.
  send(left, pattern(50000), 1);
  const std::uint32_t id = left.carrier.items.front().segment.id;
  left.messenger.arrive(left.channel, {.kind = wire::SegmentKind::pull, .id = id, .offset = 49999, .total = 2}, {});
  EXPECT_EQ(left.counters.refused_segment, 1u);
  for (int i = 0; i < 20; ++i) {
    left.messenger.arrive(left.channel, {.kind = wire::SegmentKind::pull, .id = id, .offset = 0, .total = 10}, {});
  }
  EXPECT_GT(left.counters.refused_segment, 10u);
}

TEST_F(MessengerTest, ScatteredOnBothSides) {
  const auto data = pattern(5000);
  const ConstBytes out[] = {ConstBytes(data).first(1), ConstBytes(data).subspan(1, 2499), {},
                            ConstBytes(data).subspan(2500)};
  std::vector<std::byte> target(5000);
  const Bytes in[] = {Bytes(target).first(4000), Bytes(target).subspan(4000, 1), Bytes(target).subspan(4001)};
  ReceiveOrder receive_order{.slices = in};
  right.messenger.receive(nullptr, receive_order);
  SendOrder order{.slices = out, .length = 5000};
  left.messenger.send(left.channel, order);
  run();
  EXPECT_EQ(target, data);
}

}  // namespace
}  // namespace cluster::protocol
