// Short messages inside a node take the fast lane (shm/fast_lane.h) unless a condition forbids it. The tests
// use libfabric's calls and real rings, and read the counters of both ends.
#include <rdma/fi_rma.h>

#include <array>
#include <functional>
#include <thread>

#include "unit/api/fast_lane_world.h"

namespace cluster::api::test {
namespace {

TEST_F(FastLaneTest, PlainShortMessagesTakeIt) {
  start_connected();
  EXPECT_EQ(lane_users(), kBoth);
  for (int i = 0; i < kFew; ++i) {
    EXPECT_EQ(await(left.sends, entry), 1);
    EXPECT_EQ(entry.op_context, &word);
    EXPECT_EQ(entry.flags, FI_TAGGED | FI_SEND);
  }
  expect_nothing(left.sends);
}

TEST_F(FastLaneTest, EveryPlainCallTakesItAndReportsWhatItReportsOtherwise) {
  start_connected();
  constexpr std::uint64_t kData = 0x1122334455667788;
  const std::function<ssize_t()> ways[] = {
      [&] { return send(); },
      [&] { return fi_tsenddata(left.endpoint, &word, 8, nullptr, kData, to_right, kTag, &word); },
      [&] { return fi_tinject(left.endpoint, &word, 8, to_right, kTag); },
      [&] { return fi_tinjectdata(left.endpoint, &word, 8, kData, to_right, kTag); },
  };
  for (std::size_t i = 0; i < std::size(ways); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(lane_users(ways[i]), kBoth);
    const bool data = i % 2 == 1;
    EXPECT_EQ(entry.flags, FI_TAGGED | FI_RECV | (data ? FI_REMOTE_CQ_DATA : 0));
    EXPECT_EQ(entry.data, data ? kData : 0);
    EXPECT_EQ(entry.tag, kTag);
    EXPECT_EQ(entry.len, 8u);
    EXPECT_EQ(entry.buf, &got);
    for (int sends = 0; i < 2 && sends < kFew; ++sends) EXPECT_EQ(await(left.sends, entry), 1);
    expect_nothing(left.sends);
  }
}

TEST_F(FastLaneTest, UntaggedMessagesTakeItAndNeverMeetTaggedReceives) {
  start_connected();
  post();
  const std::uint64_t before = received();
  for (word = 0; word < kFew; ++word) {
    std::uint64_t plain = 0;
    ASSERT_EQ(fi_recv(right.endpoint, &plain, sizeof plain, nullptr, FI_ADDR_UNSPEC, &plain), 0);
    ASSERT_EQ(fi_send(left.endpoint, &word, sizeof word, nullptr, to_right, nullptr), 0);
    ASSERT_EQ(await(right.receives, entry), 1);
    EXPECT_EQ(entry.op_context, &plain);
    EXPECT_EQ(entry.flags, FI_MSG | FI_RECV);
    EXPECT_EQ(plain, word);
  }
  EXPECT_GE(received(), before + kFew - 1);
}

TEST_F(FastLaneTest, MessagesOfEveryLengthAroundTheSlotAndTheLimitArrive) {
  start_connected();
  std::array<unsigned char, 4100> out{}, in{};
  for (std::size_t size = 0; size <= out.size(); size += size == 200 ? 3800 : 1) {
    out.fill(static_cast<unsigned char>(size));
    in.fill(0xff);
    const std::uint64_t before = sent();
    ASSERT_EQ(fi_trecv(right.endpoint, in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, kTag, 0, nullptr), 0);
    ASSERT_EQ(fi_tsend(left.endpoint, out.data(), size, nullptr, to_right, kTag, nullptr), 0);
    ASSERT_EQ(await(left.sends, entry), 1);
    ASSERT_EQ(await(right.receives, entry), 1);
    EXPECT_EQ(entry.len, size);
    EXPECT_TRUE(std::equal(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(size), in.begin()));
    EXPECT_EQ(in[std::min(size, in.size() - 1)], size < in.size() ? 0xff : in.back());
    EXPECT_EQ(sent() - before, size <= 4096 ? 1u : 0u) << size;
  }
}

TEST_F(FastLaneTest, ItIsLeftForWhatTheFlagsOfTheEndpointAskFor) {
  info.info.caps |= FI_FENCE;
  start_connected();
  EXPECT_EQ(lane_users(), kBoth);
  set_op_flags(FI_FENCE);
  EXPECT_EQ(lane_users(), kOnlyUp) << "a fence";
  set_op_flags(FI_DELIVERY_COMPLETE);
  EXPECT_EQ(lane_users(), kNeither) << "delivery is confirmed by the receiver";
  set_op_flags(FI_INJECT_COMPLETE);
  EXPECT_EQ(lane_users(), kBoth);
}

TEST_F(FastLaneTest, ItIsLeftByMessagesWithFlagsOfTheirOwn) {
  start_connected();
  iovec part{&word, sizeof word};
  const fi_msg_tagged message{&part, nullptr, 1, to_right, kTag, 0, nullptr, 0};
  EXPECT_EQ(lane_users([&] { return fi_tsendmsg(left.endpoint, &message, FI_FENCE); }), kOnlyUp);
  EXPECT_EQ(lane_users(), kBoth) << "and taken again";
}

TEST_F(FastLaneTest, SelectiveCompletionsTakeItAndReportWhatTheEndpointAsksFor) {
  start_connected(FI_SELECTIVE_COMPLETION);
  EXPECT_EQ(lane_users(), kBoth);
  expect_nothing(left.sends);
  set_op_flags(FI_COMPLETION);
  EXPECT_EQ(lane_users(), kBoth) << "as Open MPI sends";
  for (int i = 0; i < kFew; ++i) EXPECT_EQ(await(left.sends, entry), 1);
  expect_nothing(left.sends);
}

TEST_F(FastLaneTest, ItIsLeftByReceivesThatReportNothing) {
  start(0, FI_SELECTIVE_COMPLETION);
  for (int i = 0; i < 2 * kFew; ++i) {
    post();
    ASSERT_EQ(send(), 0);
    ASSERT_EQ(await(left.sends, entry), 1);
    for (int turn = 0; turn < 20'000 && got != word; ++turn) turn_both();
    ASSERT_EQ(got, word);
  }
  expect_nothing(right.receives);
  EXPECT_GT(sent(), 0u);
  EXPECT_EQ(received(), 0u);
}

TEST_F(FastLaneTest, ItIsLeftWhereCountersAreBound) {
  for (const bool sends : {true, false}) {
    for (Node* node : {&left, &right}) {
      *node = {open_endpoint(), open_av(), open_cq(), open_cq()};
      fid_cntr* const counter = open_cntr();
      counters_.push_back(counter);
      EXPECT_EQ(fi_ep_bind(node->endpoint, &node->av->fid, 0), 0);
      EXPECT_EQ(fi_ep_bind(node->endpoint, &node->sends->fid, FI_TRANSMIT), 0);
      EXPECT_EQ(fi_ep_bind(node->endpoint, &node->receives->fid, FI_RECV), 0);
      EXPECT_EQ(fi_ep_bind(node->endpoint, &counter->fid, sends ? FI_SEND : FI_RECV), 0);
      EXPECT_EQ(fi_enable(node->endpoint), 0);
    }
    to_right = left.insert(right);
    to_left = right.insert(left);
    connect();
    const std::uint64_t before = fi_cntr_read(counters_.at(counters_.size() - (sends ? 2 : 1)));
    EXPECT_EQ(lane_users(), sends ? kOnlyUp : kOnlyDown);
    EXPECT_EQ(fi_cntr_read(counters_.at(counters_.size() - (sends ? 2 : 1))), before + kFew);
    left.close();
    right.close();
    left.endpoint = nullptr;
    platform.clock().step = 1us;
    for (fid_cntr* counter : std::exchange(counters_, {})) EXPECT_EQ(fi_close(&counter->fid), 0);
  }
}

TEST_F(FastLaneTest, ItIsLeftWhenCreditIsUsedUpAndNoMessageIsLost) {
  platform.settings.eager_credit = 64 * 1024;  // less than each side begins with: no more is granted
  start_connected();
  constexpr std::uint64_t kMessages = 5000;
  const std::uint64_t before = sent();
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    ASSERT_EQ(send_number(), 0);
    if (i % 64 == 0) look_often();
  }
  const std::uint64_t within = protocol::kInitialCredit / (sizeof word + protocol::kMessageCharge);
  EXPECT_LE(sent() - before, within);
  EXPECT_GT(sent() - before, within / 2);
  expect_numbers(kMessages);
}

/// Without credit messages take another path; the count of those on the lane shows it.
TEST_F(FastLaneTest, CreditComesBackForWhatTookIt) {
  platform.settings.eager_credit = 64 * 1024;
  start_connected();
  const std::uint64_t charged = sizeof word + protocol::kMessageCharge;
  const std::uint64_t rounds = 2 * (protocol::kInitialCredit + platform.settings.eager_credit) / charged;
  for (const bool posted_first : {true, false}) {
    const std::uint64_t before = sent();
    for (std::uint64_t i = 0; i < rounds; ++i) {
      if (posted_first) post();
      ASSERT_EQ(send(), 0);
      turn_both();
      if (!posted_first) post();
      expect_arrival();
    }
    EXPECT_GT(sent() - before, rounds / 10 * 9) << posted_first;
  }
}

TEST_F(FastLaneTest, ItIsLeftWhereUnknownSendersAreReported) {
  info.info.caps |= FI_SOURCE | FI_SOURCE_ERR;
  start_connected();
  EXPECT_EQ(lane_users(), kOnlyDown);
}

TEST_F(FastLaneTest, ItIsLeftWhileMessagesWaitInTheQueue) {
  start_connected();
  const std::uint64_t before = sent();
  std::uint64_t accepted = 0;
  // Nothing is read: the ring fills, then the queue.
  while (accepted < 10'000 && send_number() == 0) ++accepted;
  EXPECT_LT(sent() - before, accepted) << "the ring was full";
  expect_numbers(accepted);
  const auto inject = [this] { return fi_tinject(left.endpoint, &++word, 8, to_right, kTag); };
  EXPECT_EQ(lane_users(inject).first, kFew - 1) << "taken again behind the first message on the general path";
}

TEST_F(FastLaneTest, ItIsLeftWhileAReadIsUnderWay) {
  info.info.caps |= FI_RMA;
  start_connected();
  std::array<std::uint64_t, 2> memory{11, 12};
  fid_mr* region = nullptr;
  ASSERT_EQ(fi_mr_reg(domain, memory.data(), sizeof memory, FI_REMOTE_READ, 0, 1, 0, &region, nullptr), 0);
  std::uint64_t fetched = 0;
  const std::uint64_t before = sent();
  ASSERT_EQ(fi_read(left.endpoint, &fetched, 8, nullptr, to_right, 0, fi_mr_key(region), &fetched), 0);
  post();
  ASSERT_EQ(send(), 0);
  EXPECT_EQ(sent(), before) << "the read has not been answered";
  expect_arrival();
  for (int i = 0; i < 2; ++i) ASSERT_EQ(await(left.sends, entry), 1);
  EXPECT_EQ(fetched, 11u);
  post();
  ASSERT_EQ(send(), 0);
  expect_arrival();
  EXPECT_EQ(lane_users(), kBoth);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

TEST_F(FastLaneTest, ItIsLeftWhileAWriteIsAnnounced) {
  info.info.caps |= FI_RMA;
  start_connected();
  std::vector<std::byte> from(1 << 20, std::byte{7}), into(from.size());
  fid_mr* region = nullptr;
  ASSERT_EQ(fi_mr_reg(domain, into.data(), into.size(), FI_REMOTE_WRITE, 0, 1, 0, &region, nullptr), 0);
  const std::uint64_t before = sent();
  ASSERT_EQ(
      fi_write(left.endpoint, from.data(), from.size(), nullptr, to_right, 0, fi_mr_key(region), nullptr), 0);
  post();
  ASSERT_EQ(send(), 0);
  EXPECT_EQ(sent(), before) << "the write has not been fetched";
  expect_arrival();
  EXPECT_EQ(into, from) << "a message behind a write comes behind it";
  for (int i = 0; i < 2; ++i) ASSERT_EQ(await(left.sends, entry), 1);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

TEST_F(FastLaneTest, ACanceledReceiveTakesNoMessage) {
  start_connected();
  int canceled = 0, other = 0;
  post(kTag, 0, &canceled);
  post(kTag, 0, &other);
  ASSERT_EQ(fi_cancel(&right.endpoint->fid, &canceled), 0);
  ASSERT_EQ(send(), 0);
  ASSERT_EQ(await(right.receives, entry), -FI_EAVAIL);
  fi_cq_err_entry error{};
  ASSERT_EQ(fi_cq_readerr(right.receives, &error, 0), 1);
  EXPECT_EQ(error.err, FI_ECANCELED);
  EXPECT_EQ(error.op_context, &canceled);
  expect_arrival();
  EXPECT_EQ(entry.op_context, &other);
}

TEST_F(FastLaneTest, ItIsLeftByMessagesThatAreTruncated) {
  start_connected();
  const std::uint64_t before = received();
  std::uint32_t half = 0;
  ASSERT_EQ(fi_trecv(right.endpoint, &half, sizeof half, nullptr, FI_ADDR_UNSPEC, kTag, 0, &half), 0);
  ASSERT_EQ(send(), 0);
  fi_cq_err_entry error{};
  ASSERT_EQ(await_error(right.receives, error), 1);
  EXPECT_EQ(error.err, FI_ETRUNC);
  EXPECT_EQ(error.olen, 4u);
  EXPECT_EQ(received(), before);
}

TEST_F(FastLaneTest, ReadsFillTheirEntriesInOrderAndNoFurther) {
  start_connected();
  for (const std::size_t size : {1u, 2u, 3u, 16u}) {
    std::array<std::uint64_t, kFew> words{};
    for (std::uint64_t& each : words) {
      ASSERT_EQ(fi_trecv(right.endpoint, &each, 8, nullptr, FI_ADDR_UNSPEC, kTag, 0, &each), 0);
    }
    for (int i = 0; i < kFew; ++i) ASSERT_EQ(send_number(), 0);
    std::array<fi_cq_tagged_entry, 17> entries{};
    for (std::size_t seen = 0; seen < words.size();) {
      entries[size].op_context = &entries;
      const ssize_t count = fi_cq_read(right.receives, entries.data(), size);
      ASSERT_EQ(entries[size].op_context, &entries) << "past the caller's array";
      for (ssize_t i = 0; i < count; ++i) {
        ASSERT_EQ(entries[static_cast<std::size_t>(i)].op_context, &words[seen++]) << "arrays of " << size;
      }
    }
    expect_nothing(right.receives);
  }
}

TEST_F(FastLaneTest, AFailureBehindArrivalsIsReadAfterThem) {
  start_connected();
  std::array<std::uint64_t, 3> words{};
  for (std::uint64_t& each : words) {  // the second one is too short
    const std::size_t size = &each == &words[1] ? 4 : 8;
    ASSERT_EQ(fi_trecv(right.endpoint, &each, size, nullptr, FI_ADDR_UNSPEC, kTag, 0, &each), 0);
  }
  for (std::size_t i = 0; i < words.size(); ++i) ASSERT_EQ(send_number(), 0);
  fi_cq_err_entry error{};
  ASSERT_EQ(await(right.receives, entry), 1);
  EXPECT_EQ(entry.op_context, &words[0]);
  ASSERT_EQ(await_error(right.receives, error), 1);
  EXPECT_EQ(error.op_context, &words[1]);
  ASSERT_EQ(await(right.receives, entry), 1);
  EXPECT_EQ(entry.op_context, &words[2]);
}

TEST_F(FastLaneTest, ItIsLeftForMultiReceiveBuffers) {
  start_connected();
  const std::uint64_t before = received();
  std::array<std::uint64_t, 4> words{};
  std::size_t least = 8;
  ASSERT_EQ(fi_setopt(&right.endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least), 0);
  iovec part{words.data(), sizeof words};
  const fi_msg buffer{&part, nullptr, 1, FI_ADDR_UNSPEC, &words, 0};
  ASSERT_EQ(fi_recvmsg(right.endpoint, &buffer, FI_MULTI_RECV), 0);
  for (std::uint64_t i = 0; i < words.size(); ++i) {
    word = 100 + i;
    ASSERT_EQ(fi_inject(left.endpoint, &word, sizeof word, to_right), 0);
    ASSERT_EQ(await(right.receives, entry), 1);
    EXPECT_EQ(entry.buf, &words[i]);
    EXPECT_EQ((entry.flags & FI_MULTI_RECV) != 0, i + 1 == words.size());
    EXPECT_EQ(words[i], word);
  }
  EXPECT_EQ(received(), before);
}

TEST_F(FastLaneTest, ItIsClosedWhenThePeerIsGone) {
  start_connected();
  EXPECT_EQ(lane_users(), kBoth);
  EXPECT_EQ(fi_close(&right.endpoint->fid), 0);
  platform.clock().step = 1us;
  for (int turn = 0; turn < 40'000; ++turn) fi_cq_read(left.sends, nullptr, 0);
  const std::uint64_t before = sent();
  EXPECT_NE(send(), 0) << "there is neither ring nor network";
  EXPECT_EQ(sent(), before);
  right.endpoint = open_endpoint();  // for the end of the test
}

TEST_F(FastLaneTest, MessagesOfSeveralThreadsArriveOnceEach) {
  start_connected();
  constexpr std::uint64_t kThreads = 3, kMessages = 3000;
  std::vector<std::thread> senders;
  for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
    senders.emplace_back([&, thread] {
      for (std::uint64_t i = 0; i < kMessages; ++i) {
        const std::uint64_t number = thread << 32 | i;
        while (fi_tinject(left.endpoint, &number, sizeof number, to_right, kTag) != 0)
          std::this_thread::yield();
      }
    });
  }
  std::array<std::uint64_t, kThreads> next{};
  for (std::uint64_t i = 0; i < kThreads * kMessages; ++i) {
    post();
    ASSERT_EQ(await(right.receives, entry), 1);
    ASSERT_LT(got >> 32, kThreads);
    EXPECT_EQ(got & 0xffffffff, next[got >> 32]++) << "those of one thread in order";
  }
  for (std::thread& sender : senders) sender.join();
  EXPECT_GT(sent(), 0u);
}

TEST_F(FastLaneTest, AThreadThatSleepsIsWoken) {
  start();
  fid_cq* const sleepers = open_cq(FI_CQ_FORMAT_TAGGED, FI_WAIT_UNSPEC);
  Node third{open_endpoint(), open_av(), open_cq(), sleepers};
  EXPECT_EQ(fi_ep_bind(third.endpoint, &third.av->fid, 0), 0);
  EXPECT_EQ(fi_ep_bind(third.endpoint, &third.sends->fid, FI_TRANSMIT), 0);
  EXPECT_EQ(fi_ep_bind(third.endpoint, &sleepers->fid, FI_RECV), 0);
  EXPECT_EQ(fi_enable(third.endpoint), 0);
  const fi_addr_t to_third = left.insert(third);
  const std::uint64_t before = sent();
  for (std::uint64_t round = 0; round < 200; ++round) {
    ASSERT_EQ(fi_trecv(third.endpoint, &got, sizeof got, nullptr, FI_ADDR_UNSPEC, kTag, 0, nullptr), 0);
    std::thread sender([&, round] {
      if (round % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
      word = round;
      ASSERT_EQ(fi_tinject(left.endpoint, &word, sizeof word, to_third, kTag), 0);
    });
    fi_cq_tagged_entry woken{};
    EXPECT_EQ(fi_cq_sread(sleepers, &woken, 1, nullptr, -1), 1);
    sender.join();
    EXPECT_EQ(got, round);
  }
  EXPECT_GT(sent(), before);
  third.close();
}

}  // namespace
}  // namespace cluster::api::test
