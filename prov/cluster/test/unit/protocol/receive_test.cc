// Peeks, cancellation, loss of the peer, and malformed segments.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/messenger_pair.h"

namespace cluster::protocol {
namespace {

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
  RecvOp take{.slices = {}, .context = &claim, .tagged = true};
  const Bytes slices[] = {target};
  take.slices = slices;
  take.recv_claimed = true;
  ASSERT_EQ(right.messenger.matcher().receive(nullptr, take), Status::ok);
  peek(right, 9, Peek::look, &gone);
  const auto got = right.take();
  ASSERT_EQ(got.size(), 6u);
  EXPECT_EQ(got[0].status, Status::no_message);
  EXPECT_EQ(got[0].context, &nothing);
  EXPECT_EQ(got[1].length, 3000u);
  EXPECT_EQ(got[2].length, 3000u);
  EXPECT_EQ(got[3].length, 50000u);
  EXPECT_EQ(got[3].context, &later);
  EXPECT_EQ(got[4].context, &claim);
  EXPECT_EQ(got[4].length, 3000u);
  EXPECT_EQ(got[5].status, Status::no_message);
  EXPECT_EQ(right.messenger.matcher().receive(nullptr, take), Status::no_message);
}

/// Takes the outcomes of messages that are part of collectives.
struct IgnoringListener final : InternalListener {
  void sent(void*, Status) override {}
  void received(void*, Status, std::size_t) override {}
  bool wanted(std::uint64_t, std::uint64_t, bool) override { return true; }
  void member_lost(const SocketAddress&, Status) override {}
  void advance() override {}
};

/// Only such a receive is completed by the fast lane, which reports one buffer, in one entry, to the queue of receives.
TEST_F(MessengerTest, APlainReceiveIsOneBufferForOneMessageThatIsReported) {
  IgnoringListener collectives;
  EndpointBindings bindings;
  bindings.rx_queue = &right.completions;
  bindings.engine.internal = &collectives;
  right.messenger.attach(bindings);
  std::byte target[16];
  const Bytes whole[] = {target};
  const Bytes halves[] = {Bytes(target).first(8), Bytes(target).last(8)};
  const auto is_plain = [&](RecvOp op) {
    Matcher& matcher = right.messenger.matcher();
    op.context = target;
    EXPECT_EQ(matcher.receive(&right.channel, op), Status::ok);
    RecvRequest* const posted = matcher.queues().of(op).find_context(target);
    const bool plain = posted != nullptr && posted->plain;
    EXPECT_TRUE(matcher.cancel(target));
    return plain;
  };
  EXPECT_TRUE(is_plain({.slices = whole, .tagged = true}));
  EXPECT_TRUE(is_plain({.slices = whole}));
  EXPECT_FALSE(is_plain({.slices = halves, .tagged = true})) << "two buffers";
  EXPECT_FALSE(is_plain({.slices = {}, .tagged = true})) << "no buffer";
  EXPECT_FALSE(is_plain({.slices = whole, .tagged = true, .report = false})) << "no completion";
  EXPECT_FALSE(is_plain({.slices = whole, .min_multi_recv = 8})) << "many messages";
  EXPECT_FALSE(is_plain({.slices = whole, .tagged = true, .internal = true}))
      << "completed to another listener";
}

TEST_F(MessengerTest, DiscardedMessagesStillCompleteAtTheSender) {
  int context;
  for (const std::size_t size : {8u, 3000u, 50000u}) {
    send(left, pattern(size), 9, nullptr, CompletionLevel::delivery);
    run();
    peek(right, 9, Peek::discard, &context);
    run();
    EXPECT_EQ(left.take().size(), 1u) << size;
    ASSERT_EQ(right.take().size(), 1u);
    peek(right, 9, Peek::look, &context);
    EXPECT_EQ(right.take()[0].status, Status::no_message);
  }
}

TEST_F(MessengerTest, AClaimedMessageThatIsDiscardedHasASenderToo) {
  EndpointBindings bindings;
  bindings.rx_queue = &right.completions;
  bindings.want_source = bindings.report_unknown_source = true;
  right.messenger.attach(bindings);
  int context;
  send(left, pattern(8), 9);
  run();
  peek(right, 9, Peek::claim, &context);
  RecvOp drop{.slices = {}, .context = &context, .tagged = true};
  drop.discard_claimed = true;
  ASSERT_EQ(right.messenger.matcher().receive(nullptr, drop), Status::ok);
  const auto got = right.take();
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[1].context, &context);
  EXPECT_EQ(got[1].status, Status::ok);
  EXPECT_EQ(got[1].source, 7u);
}

TEST_F(MessengerTest, CancelTakesOneWaitingReceive) {
  std::byte target[8];
  int one, two;
  receive(right, target, 1, 0, &one);
  receive(right, target, 1, 0, &two);
  EXPECT_TRUE(right.messenger.matcher().cancel(&one));
  EXPECT_FALSE(right.messenger.matcher().cancel(&one));
  send(left, pattern(8), 1);
  run();
  const auto got = right.take();
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].status, Status::canceled);
  EXPECT_EQ(got[1].context, &two);
  EXPECT_FALSE(right.messenger.matcher().cancel(&two));
}

TEST_F(MessengerTest, LossOfThePeerEndsEverythingInFlightAndNothingElse) {
  std::vector<std::byte> big(500000), small(8);
  int pulling, directed, any_source;
  receive(right, big, 1, 0, &pulling);
  receive(right, small, 2, 0, &directed, true);
  receive(right, small, 3, 0, &any_source);
  send(left, pattern(500000), 1, &left);
  send(left, pattern(8), 77);
  carry(left, right);
  right.carrier.items.clear();
  right.messenger.fail(right.channel, Status::reset, true);
  left.messenger.fail(left.channel, Status::unreachable, true);
  auto got = right.take();
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].context, &pulling);
  EXPECT_EQ(got[0].status, Status::reset);
  EXPECT_EQ(got[1].context, &directed);
  auto sent = left.take();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].status, Status::ok);  // the eager one had arrived
  EXPECT_EQ(sent[1].status, Status::unreachable);
  EXPECT_EQ(sent[1].context, &left);
  // The next session works, and what had arrived completely is still there.
  left.channel.carrier = &left.carrier;
  right.channel.carrier = &right.carrier;
  left.carrier.items.clear();
  receive(right, small, 77);
  ASSERT_EQ(right.take().size(), 1u);
  send(left, pattern(8), 3);
  run();
  got = right.take();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].context, &any_source);
}

/// However short the message is, its sender keeps it until a receive has taken it.
TEST_F(MessengerTest, AMatchIsWaitedFor) {
  int context;
  for (const bool inject : {false, true}) {
    for (const std::size_t size : {0u, 8u, 900u, 50'000u}) {
      if (inject && size > kInjectMax) continue;
      const std::vector<std::byte> bytes = pattern(size);
      const ConstBytes slices[] = {bytes};
      SendOp op{
          .slices = slices, .length = size, .context = &context, .tag = 9, .tagged = true, .inject = inject};
      op.completion_level = CompletionLevel::match;
      ASSERT_EQ(left.messenger.send(left.channel, op), Status::ok);
      run();
      EXPECT_EQ(left.take().size(), 0u) << size;
      EXPECT_EQ(right.messenger.matcher().stored(), 1u);
      std::vector<std::byte> target(size);
      receive(right, target, 9);
      run();
      EXPECT_EQ(outcome(left).status, Status::ok);
      EXPECT_EQ(outcome(right).length, size);
      EXPECT_EQ(target, bytes);
    }
  }
}

/// Messages that had begun to come when their sender was lost, and no receive was posted.
class LostMessageTest : public MessengerTest {
 protected:
  void lose(std::size_t size, std::size_t arrived_segments) {
    send(left, pattern(size), 5);
    while (left.carrier.items.size() > arrived_segments) left.carrier.items.pop_back();
    carry(left, right);
    right.messenger.fail(right.channel, Status::reset, false);
    EXPECT_EQ(right.take().size(), 0u);
  }
  std::vector<std::byte> target = std::vector<std::byte>(50'000);
  int context;
};

TEST_F(LostMessageTest, EndsTheReceiveThatTakesIt) {
  for (const bool directed : {false, true}) {
    lose(target.size(), 1);
    ASSERT_EQ(right.messenger.matcher().stored(), 1u);
    receive(right, target, 5, 0, &context, directed);
    const Completion got = outcome(right);
    EXPECT_EQ(got.status, Status::reset);
    EXPECT_EQ(got.context, &context);
    EXPECT_EQ(got.tag, 5u);
    EXPECT_EQ(got.source, 7u);
    EXPECT_EQ(right.messenger.matcher().stored(), 0u);
    EXPECT_FALSE(right.messenger.under_way());
    right.channel.carrier = &right.carrier;
  }
  EXPECT_TRUE(right.carrier.items.empty()) << "nothing is asked for";
}

TEST_F(LostMessageTest, MayHaveArrivedInPart) {
  lose(3'000, 2);
  receive(right, target, 5);
  EXPECT_EQ(outcome(right).status, Status::reset);
}

TEST_F(LostMessageTest, IsFoundByAPeekAndClaimed) {
  lose(target.size(), 1);
  peek(right, 5, Peek::look, &context);
  EXPECT_EQ(outcome(right).length, target.size());
  peek(right, 5, Peek::claim, &context);
  EXPECT_EQ(outcome(right).status, Status::ok);
  const Bytes slices[] = {target};
  RecvOp take{.slices = slices, .context = &context, .tagged = true};
  take.recv_claimed = true;
  ASSERT_EQ(right.messenger.matcher().receive(nullptr, take), Status::ok);
  EXPECT_EQ(outcome(right).status, Status::reset);
}

TEST_F(LostMessageTest, IsLostOnceThoughItsSenderIsLostAgain) {
  lose(target.size(), 1);
  right.messenger.fail(right.channel, Status::unreachable, true);
  peek(right, 5, Peek::discard, &context);
  EXPECT_EQ(outcome(right).status, Status::ok);
  EXPECT_EQ(right.messenger.matcher().stored(), 0u);
  EXPECT_TRUE(right.carrier.items.empty());
}

TEST_F(LostMessageTest, WasClaimedBefore) {
  send(left, pattern(target.size()), 5);
  carry(left, right);
  peek(right, 5, Peek::claim, &context);
  ASSERT_EQ(right.take().size(), 1u);
  right.messenger.fail(right.channel, Status::reset, false);
  const Bytes slices[] = {target};
  RecvOp take{.slices = slices, .context = &context, .tagged = true};
  take.recv_claimed = true;
  ASSERT_EQ(right.messenger.matcher().receive(nullptr, take), Status::ok);
  EXPECT_EQ(outcome(right).status, Status::reset);
}

TEST_F(MessengerTest, InvalidSegmentsAreCountedAndChangeNothing) {
  const auto bytes = pattern(100);
  const auto deliver = [&](wire::Segment segment, std::size_t length) {
    segment.length = static_cast<std::uint32_t>(length);
    right.messenger.arrive(right.channel, segment, ConstBytes(bytes).first(length));
  };
  wire::Segment next{.kind = wire::SegmentKind::eager_next};
  deliver(next, 10);  // no message begun
  wire::Segment first{.kind = wire::SegmentKind::eager_first};
  first.total = 5;
  deliver(first, 10);  // longer than announced
  first.total = 1ull << 40;
  deliver(first, 10);  // beyond all credit
  deliver({.kind = wire::SegmentKind::bulk, .peer_id = 12345}, 10);
  deliver({.kind = wire::SegmentKind::done, .id = 999}, 0);
  deliver({.kind = wire::SegmentKind::pull, .id = 999, .peer_id = 1, .offset = 0, .total = 10}, 0);
  EXPECT_EQ(right.counters.refused_segment, 6u);
  // A pull beyond the end of a real message, and too many of them.
  send(left, pattern(50000), 1);
  const std::uint32_t id = left.carrier.items.front().segment.id;
  left.messenger.arrive(left.channel,
                        {.kind = wire::SegmentKind::pull, .id = id, .offset = 49999, .total = 2}, {});
  EXPECT_EQ(left.counters.refused_segment, 1u);
  for (int i = 0; i < 20; ++i) {
    left.messenger.arrive(left.channel, {.kind = wire::SegmentKind::pull, .id = id, .offset = 0, .total = 10},
                          {});
  }
  EXPECT_GT(left.counters.refused_segment, 10u);
}

/// A piece that came before must not stand for another one: the message would end without its last bytes.
TEST_F(MessengerTest, PiecesBeyondWhatIsInFlightAreRefused) {
  std::vector<std::byte> target(10'000);
  send(left, pattern(target.size()), 1);
  receive(right, target, 1);
  carry(left, right);
  ASSERT_EQ(right.carrier.items.size(), 1u);
  ASSERT_EQ(right.carrier.items.front().segment.kind, wire::SegmentKind::pull);
  wire::Segment piece{.kind = wire::SegmentKind::bulk};
  piece.peer_id = right.carrier.items.front().segment.peer_id;
  piece.length = 6'000;
  const auto payload = pattern(piece.length);
  right.messenger.arrive(right.channel, piece, payload);
  EXPECT_EQ(right.counters.refused_segment, 0u);
  right.messenger.arrive(right.channel, piece, payload);
  EXPECT_EQ(right.counters.refused_segment, 1u);
  EXPECT_TRUE(right.take().empty());
}

TEST_F(MessengerTest, ScatteredOnBothSides) {
  const auto data = pattern(5000);
  const ConstBytes out[] = {
      ConstBytes(data).first(1), ConstBytes(data).subspan(1, 2499), {}, ConstBytes(data).subspan(2500)};
  std::vector<std::byte> target(5000);
  const Bytes in[] = {Bytes(target).first(4000), Bytes(target).subspan(4000, 1), Bytes(target).subspan(4001)};
  RecvOp receive_order{.slices = in};
  right.messenger.matcher().receive(nullptr, receive_order);
  SendOp order{.slices = out, .length = 5000};
  left.messenger.send(left.channel, order);
  run();
  EXPECT_EQ(target, data);
}

}  // namespace
}  // namespace cluster::protocol
