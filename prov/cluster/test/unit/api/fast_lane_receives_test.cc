// Which receive a message of the fast lane (shm/fast_lane.h) goes to, and receives that are posted along it with the
// requests of those that it has filled.
#include <array>

#include "unit/api/fast_lane_world.h"

namespace cluster::api::test {
namespace {

using FastLaneReceivesTest = FastLaneTest;

TEST_F(FastLaneReceivesTest, ReceivesPostedBehindVeryManyAreFound) {
  start_connected();
  constexpr std::uint64_t kMany = 100;
  constexpr std::uint64_t kBase = kTag + 1000;
  for (std::uint64_t i = 0; i < 2 * kMany; ++i) post();  // so many requests will be reusable
  for (std::uint64_t i = 0; i < 2 * kMany; ++i) {
    ASSERT_EQ(send(), 0);
    expect_arrival();
  }
  std::array<int, kMany + 1> contexts{};
  for (std::uint64_t i = 0; i < kMany; ++i) post(kBase + i, 0, &contexts[i]);
  const auto exchange_last = [&](std::uint64_t i) {
    ASSERT_EQ(fi_tinject(left.endpoint, &++word, 8, to_right, kBase + i), 0);
    expect_arrival();
    EXPECT_EQ(entry.op_context, &contexts[i]);
  };
  exchange_last(kMany - 1);  // a search past all the others: from now on they are indexed
  post(kBase + kMany, 0, &contexts[kMany]);
  exchange_last(kMany);
  for (std::uint64_t i = 0; i + 1 < kMany; ++i) exchange_last(i);
  EXPECT_EQ(lane_users(), kBoth);
}

TEST_F(FastLaneReceivesTest, AReceiveInTheMemoryOfAnotherOneIsOnlyWhatItWasPostedAs) {
  start_connected();
  std::array<std::uint64_t, 2> words{};
  int any = 0, exact = 0;
  ASSERT_EQ(
      fi_trecv(right.endpoint, words.data(), sizeof words, nullptr, to_left, 0, ~std::uint64_t{0}, &any), 0);
  ASSERT_EQ(send(), 0);
  ASSERT_EQ(await(right.receives, entry), 1);
  EXPECT_EQ(entry.op_context, &any);
  ASSERT_EQ(fi_trecv(right.endpoint, &got, 4, nullptr, FI_ADDR_UNSPEC, kTag + 1, 0, &exact), 0);
  ASSERT_EQ(send(), 0);
  for (int i = 0; i < kFew; ++i) turn_both();
  expect_nothing(right.receives);  // neither any tag nor the buffer of the receive before
  ASSERT_EQ(fi_tinject(left.endpoint, &word, 8, to_right, kTag + 1), 0);
  fi_cq_err_entry error{};
  ASSERT_EQ(await_error(right.receives, error), 1);
  EXPECT_EQ(error.op_context, &exact);
  EXPECT_EQ(error.err, FI_ETRUNC);
  EXPECT_EQ(error.olen, 4u);
  post();
  expect_arrival();
}

TEST_F(FastLaneReceivesTest, AReceiveInTheMemoryOfADirectedOneTakesMessagesOfAnySender) {
  start_connected();
  const fi_addr_t to_self = right.insert(right);
  ASSERT_EQ(fi_trecv(right.endpoint, &got, sizeof got, nullptr, to_left, kTag, 0, nullptr), 0);
  ASSERT_EQ(send(), 0);
  expect_arrival();
  post();
  ASSERT_EQ(fi_tinject(right.endpoint, &++word, 8, to_self, kTag), 0);
  expect_arrival();
}

TEST_F(FastLaneReceivesTest, AReceiveInTheMemoryOfOneThatReportedReportsOnlyWhatItWasAskedFor) {
  start(0, FI_SELECTIVE_COMPLETION);
  std::uint64_t silent = 0;
  iovec place{&got, sizeof got};
  const fi_msg_tagged reporting{&place, nullptr, 1, FI_ADDR_UNSPEC, kTag, 0, nullptr, 0};
  const auto exchange_reported = [&] {
    ASSERT_EQ(fi_trecvmsg(right.endpoint, &reporting, FI_COMPLETION), 0);
    ASSERT_EQ(send(), 0);
    expect_arrival();
  };
  for (int i = 0; i < kFew; ++i) exchange_reported();
  ASSERT_EQ(fi_trecv(right.endpoint, &silent, sizeof silent, nullptr, FI_ADDR_UNSPEC, kTag, 0, nullptr), 0);
  ASSERT_EQ(send(), 0);
  for (int i = 0; i < kFew; ++i) turn_both();
  expect_nothing(right.receives);
  EXPECT_EQ(silent, word) << "though the message has come";
}

TEST_F(FastLaneReceivesTest, MessagesWithoutAReceiveAreStored) {
  start_connected();
  const std::uint64_t before = received();
  ASSERT_EQ(send(), 0);
  look_often();
  EXPECT_EQ(received(), before + 1);
  fi_msg_tagged look{nullptr, nullptr, 0, FI_ADDR_UNSPEC, kTag, 0, nullptr, 0};
  ASSERT_EQ(fi_trecvmsg(right.endpoint, &look, FI_PEEK), 0);
  ASSERT_EQ(await(right.receives, entry), 1);
  EXPECT_EQ(entry.len, 8u) << "a peek finds it";
  post();
  expect_arrival();
  EXPECT_EQ(received(), before + 1);
}

TEST_F(FastLaneReceivesTest, AMessageWithoutAReceiveStaysInTheRingForSomeLooks) {
  start_connected();
  const std::uint64_t before = received();
  for (int i = 0; i < kFew; ++i) {
    const std::uint64_t taken = received();
    ASSERT_EQ(send(), 0);
    for (int k = 0; k < kFew; ++k) turn_both();
    EXPECT_EQ(received(), taken) << "not stored yet";
    post();
    expect_arrival();
  }
  EXPECT_GE(received(), before + kFew - 1)
      << "delivered out of the ring, but for one that met a turn that looks at everything";
}

TEST_F(FastLaneReceivesTest, WhatStaysInTheRingIsFoundByAPeek) {
  start_connected();
  ASSERT_EQ(send(), 0);
  turn_both();
  fi_msg_tagged look{nullptr, nullptr, 0, FI_ADDR_UNSPEC, kTag, 0, nullptr, 0};
  ASSERT_EQ(fi_trecvmsg(right.endpoint, &look, FI_PEEK), 0);
  ASSERT_EQ(await(right.receives, entry), 1);
  EXPECT_EQ(entry.len, 8u);
}

TEST_F(FastLaneReceivesTest, NothingStaysInTheRingWhereAReceiveMayWaitForWhatFollowsIt) {
  start_connected();
  const std::uint64_t before = received();
  ASSERT_EQ(send_number(), 0);
  ASSERT_EQ(fi_tinject(left.endpoint, &++word, 8, to_right, kTag + 1), 0);
  post(kTag + 1);
  turn_both();
  EXPECT_EQ(received(), before + 2) << "one stored, the other delivered, at the first look";
  expect_arrival();
  expect_numbers(1);
}

TEST_F(FastLaneReceivesTest, WhatFollowsAMessageInTheRingWaitsNoLongerThanIt) {
  start_connected();
  ASSERT_EQ(send_number(), 0);
  std::uint64_t untagged = 0, other = 0;
  ASSERT_EQ(fi_recv(right.endpoint, &untagged, 8, nullptr, FI_ADDR_UNSPEC, &other), 0);
  ASSERT_EQ(fi_inject(left.endpoint, &++word, 8, to_right), 0);
  ASSERT_EQ(await(right.receives, entry), 1);
  EXPECT_EQ(entry.op_context, &other);
  EXPECT_EQ(untagged, word);
  expect_numbers(1);
}

TEST_F(FastLaneReceivesTest, ItIsLeftWhenTheStoreMayBeFull) {
  platform.settings.unexpected_max = 8;  // of which one peer may have one: from the first on each is judged
  start_connected();
  const std::uint64_t before = received();
  ASSERT_EQ(send_number(), 0);
  ASSERT_EQ(send_number(), 0);
  look_often();
  EXPECT_EQ(received(), before + 1);
  expect_numbers(2);
}

TEST_F(FastLaneReceivesTest, MessagesForALaterReceiveTakeIt) {
  start_connected();
  int oldest = 0, wildcard = 0;
  const std::uint64_t before = received();
  post(kTag + 1, 0, &oldest);
  post(0, ~std::uint64_t{0}, &wildcard);
  ASSERT_EQ(send(), 0);
  ASSERT_EQ(await(right.receives, entry), 1);
  EXPECT_EQ(entry.op_context, &wildcard);
  EXPECT_EQ(received(), before + 1) << "the oldest receive was for another message";
  post(0, ~std::uint64_t{0}, &wildcard);
  ASSERT_EQ(fi_tinject(left.endpoint, &word, 8, to_right, kTag + 1), 0);
  ASSERT_EQ(await(right.receives, entry), 1);
  EXPECT_EQ(entry.op_context, &oldest) << "and this is its message";
}

TEST_F(FastLaneReceivesTest, ItIsLeftByMessagesForAReceiveBehindManyOthers) {
  start_connected();
  constexpr int kMany = 20;
  const std::uint64_t before = received();
  for (int i = 0; i < kMany; ++i) post(kTag + 1);
  post();
  ASSERT_EQ(send(), 0);
  expect_arrival();
  EXPECT_EQ(received(), before);
  ASSERT_EQ(send(), 0);
  for (int i = 0; i < kFew; ++i) turn_both();
  EXPECT_EQ(received(), before) << "whether one of them matches is not known either";
}

TEST_F(FastLaneReceivesTest, DirectedReceivesTakeOnlyTheirSendersMessages) {
  start_connected();
  const std::uint64_t before = received();
  const fi_addr_t to_self = right.insert(right);
  int from_self = 0, from_left = 0;
  ASSERT_EQ(fi_trecv(right.endpoint, &got, 8, nullptr, to_self, kTag, 0, &from_self), 0);
  ASSERT_EQ(fi_trecv(right.endpoint, &got, 8, nullptr, to_left, kTag, 0, &from_left), 0);
  ASSERT_EQ(send(), 0);
  ASSERT_EQ(await(right.receives, entry), 1);
  EXPECT_EQ(entry.op_context, &from_left);
  EXPECT_EQ(received(), before + 1);
}

}  // namespace
}  // namespace cluster::api::test
