// Buffers for many messages: packed without gaps, released once and last, whether messages come early, come
// in parts, are announced, do not fit, or never come.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/messenger_pair.h"

namespace cluster::protocol {
namespace {

class MultiReceiveTest : public MessengerTest {
 protected:
  Status post(std::size_t size, std::size_t min_multi_recv, void* context = nullptr, bool report = true,
              Channel* from = nullptr) {
    const Bytes slices[] = {{memory.data() + posted, size}};
    posted += size;
    RecvOp order{.slices = slices, .context = context, .report = report, .min_multi_recv = min_multi_recv};
    return right.messenger.matcher().receive(from, order);
  }

  void send_message(ConstBytes bytes) {
    const ConstBytes slices[] = {keep(bytes)};
    ASSERT_EQ(left.messenger.send(left.channel, {.slices = slices, .length = bytes.size()}), Status::ok);
  }

  bool matches(std::size_t at, std::size_t size, unsigned seed) {
    const auto bytes = pattern(size, seed);
    return std::equal(bytes.begin(), bytes.end(), memory.begin() + static_cast<std::ptrdiff_t>(at));
  }

  /// The messages reported; checks that each buffer is released once, after all of its messages.
  std::vector<Completion> messages(std::size_t released) {
    std::vector<Completion> all;
    std::vector<void*> over;
    for (const Completion& completion : right.take()) {
      EXPECT_EQ(std::count(over.begin(), over.end(), completion.context), 0) << "reported after the release";
      if (completion.releases_buffer) over.push_back(completion.context);
      if (completion.kind == Completion::Kind::receive) all.push_back(completion);
    }
    EXPECT_EQ(over.size(), released);
    return all;
  }

  std::vector<std::byte> memory = std::vector<std::byte>(1 << 20);
  std::size_t posted = 0;
  int first = 0, second = 0;
};

TEST_F(MultiReceiveTest, PacksMessagesAndReleasesTheBufferWithTheLast) {
  post(100, 30, &first);
  post(100, 30, &second);
  for (unsigned i = 0; i < 6; ++i) send_message(pattern(30, i));
  run();
  const auto got = messages(2);
  ASSERT_EQ(got.size(), 6u);
  for (unsigned i = 0; i < 6; ++i) {
    EXPECT_EQ(got[i].context, i < 3 ? &first : &second);
    EXPECT_EQ(got[i].buffer, memory.data() + (i / 3) * 100 + (i % 3) * 30);
    EXPECT_EQ(got[i].length, 30u);
    EXPECT_EQ(got[i].releases_buffer, i % 3 == 2);
    EXPECT_TRUE(matches((i / 3) * 100 + (i % 3) * 30, 30, i));
  }
}

TEST_F(MultiReceiveTest, MatchesUnexpectedMessagesInOrder) {
  for (const std::size_t size : {0u, 10u, 3000u, 50000u, 7u}) send_message(pattern(size, unsigned(size)));
  run();
  post(100000, 1000, &first);
  run();
  const auto got = messages(0);
  ASSERT_EQ(got.size(), 5u);
  for (const Completion& completion : got) {
    const auto at = static_cast<std::size_t>(static_cast<std::byte*>(completion.buffer) - memory.data());
    EXPECT_TRUE(matches(at, completion.length, unsigned(completion.length)));
  }
  std::size_t end = 0;
  for (const Completion& completion : got) {
    end = std::max(end, static_cast<std::size_t>(static_cast<std::byte*>(completion.buffer) - memory.data()) +
                            completion.length);
  }
  EXPECT_EQ(end, 53017u) << "no gaps";
}

TEST_F(MultiReceiveTest, ALargeMessageHoldsTheBufferUntilItIsThere) {
  post(60000, 20000, &first);
  send_message(pattern(50000, 1));  // announced; closes the buffer
  post(100, 10, &second);
  send_message(pattern(10, 2));
  run();
  const auto got = messages(1);
  ASSERT_EQ(got.size(), 2u);
  for (const Completion& completion : got)
    EXPECT_EQ(completion.releases_buffer, completion.context == &first);
  EXPECT_TRUE(matches(0, 50000, 1));
  EXPECT_TRUE(matches(60000, 10, 2));
}

TEST_F(MultiReceiveTest, AMessageTooLongIsTruncatedAndEndsTheBuffer) {
  for (const std::size_t size : {200u, 50000u}) {
    post(100, 10, &first);
    send_message(pattern(50, 1));
    send_message(pattern(size, 2));
    run();
    const auto got = messages(1);
    ASSERT_EQ(got.size(), 2u);
    EXPECT_EQ(got[1].status, Status::truncated);
    EXPECT_EQ(got[1].length, 50u);
    EXPECT_EQ(got[1].lost, size - 50);
    EXPECT_FALSE(got[1].releases_buffer);
  }
}

TEST_F(MultiReceiveTest, CancelIsReportedOnceAndAfterWhatIsInFlight) {
  post(100000, 10, &first);
  EXPECT_TRUE(right.messenger.matcher().cancel(&first));
  auto got = messages(1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].status, Status::canceled);
  post(100000, 10, &first);
  send_message(pattern(50000, 1));
  carry(left, right);
  EXPECT_TRUE(right.messenger.matcher().cancel(&first));
  EXPECT_FALSE(right.messenger.matcher().cancel(&first));
  send_message(pattern(10, 1));
  run();
  got = messages(1);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].status, Status::ok);
  EXPECT_EQ(got[1].status, Status::canceled);
  EXPECT_EQ(right.counters.unexpected, 1u);
}

TEST_F(MultiReceiveTest, TheReleaseIsReportedEvenIfMessagesAreNot) {
  post(100, 60, &first, false);
  send_message(pattern(50));
  run();
  const auto reported = right.take();
  ASSERT_EQ(reported.size(), 1u);
  EXPECT_EQ(reported[0].kind, Completion::Kind::buffer_released);
  EXPECT_EQ(reported[0].context, &first);
}

TEST_F(MultiReceiveTest, ALostPeerLeavesTheBufferToOthersUnlessItIsDirected) {
  post(100000, 10, &first);
  post(100000, 10, &second, true, &right.channel);
  send_message(pattern(50000, 1));
  carry(left, right);
  right.messenger.fail(right.channel, Status::reset, true);
  const auto got = messages(1);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].status, Status::reset);
  EXPECT_EQ(got[0].context, &first);
  EXPECT_FALSE(got[0].releases_buffer);
  EXPECT_EQ(got[1].context, &second);
  EXPECT_TRUE(got[1].releases_buffer);
  EXPECT_TRUE(right.messenger.matcher().cancel(&first));
  EXPECT_FALSE(right.messenger.under_way());
}

TEST_F(MultiReceiveTest, AMessageThatWasLostBeforeTheBufferCameIsReportedInIt) {
  send_message(pattern(50000, 1));
  carry(left, right);
  right.messenger.fail(right.channel, Status::reset, false);
  post(100000, 10, &first);
  const auto got = messages(0);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].status, Status::reset);
  EXPECT_FALSE(got[0].releases_buffer);
  EXPECT_TRUE(right.messenger.matcher().cancel(&first));
  EXPECT_FALSE(right.messenger.under_way());
}

TEST_F(MultiReceiveTest, UnknownSourcesAreReportedWithTheirMessage) {
  struct NoHandles final : AddressHandles {
    std::uint64_t handle_of(const Channel&) override { return kAddrNotAvail; }
    bool is_member(const Channel&) override { return true; }
  } handles;
  Counters counters;
  CompletionQueue queue;
  Messenger messenger(settings, counters, handles);
  EndpointBindings bindings;
  bindings.rx_queue = &queue;
  bindings.want_source = bindings.report_unknown_source = true;
  messenger.attach(bindings);
  const Bytes slices[] = {{memory.data(), 100}};
  ASSERT_EQ(messenger.matcher().receive(nullptr, {.slices = slices, .context = &first}), Status::ok);
  wire::Segment segment;
  segment.length = 10;
  messenger.arrive(right.channel, segment, pattern(10, 3));
  bool seen = false;
  const auto any = [](const Completion&) { return true; };
  queue.drain(1, any, [&](const Completion& completion) {
    seen = completion.status == Status::unknown_source && completion.length == 10 &&
           completion.context == &first;
  });
  EXPECT_TRUE(seen);
  EXPECT_TRUE(matches(0, 10, 3));
}

}  // namespace
}  // namespace cluster::protocol
