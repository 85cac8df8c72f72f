// Receives that are posted along the fast lane (engine/fast_lane.h) with the requests of those that it has filled.
#include <array>

#include "unit/api/fast_lane_world.h"

namespace cluster::api::test {
namespace {

using FastLaneReceivesTest = FastLaneTest;

TEST_F(FastLaneReceivesTest, ReceivesPostedBehindVeryManyAreFound) {
  start_connected();
  constexpr std::uint64_t kMany = 100;
  constexpr std::uint64_t kBase = kTag + 1000;
  std::array<int, kMany + 1> contexts{};
  for (std::uint64_t i = 0; i < kMany; ++i) post(kBase + i, 0, &contexts[i]);
  const auto exchange_last = [&](std::uint64_t i) {
    ASSERT_EQ(fi_tinject(left.endpoint, &++word, 8, to_right, kBase + i), 0);
    expect_arrival();
    EXPECT_EQ(entry.op_context, &contexts[i]);
  };
  exchange_last(kMany - 1);  // a walk past all of the others: from now on they are indexed
  post(kBase + kMany, 0, &contexts[kMany]);
  exchange_last(kMany);
  for (std::uint64_t i = 0; i + 1 < kMany; ++i) exchange_last(i);
  EXPECT_EQ(lane_users(), kBoth);
}

TEST_F(FastLaneReceivesTest, AReceiveInTheMemoryOfAnotherOneIsOnlyWhatItWasPostedAs) {
  start_connected();
  std::array<std::uint64_t, 2> words{};
  int any = 0, exact = 0;
  ASSERT_EQ(fi_trecv(right.endpoint, words.data(), sizeof words, nullptr, to_left, 0, ~std::uint64_t{0}, &any), 0);
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

}  // namespace
}  // namespace cluster::api::test
