#include "sim/match_order.h"

#include <gtest/gtest.h>

namespace cluster::sim {
namespace {

constexpr MatchCriteria kAnything{true, 0, ~std::uint64_t{0}};

bool note(MatchOrder& order, std::uint32_t message, std::uint64_t position, std::uint64_t tag,
          const MatchCriteria& criteria) {
  MatchOrder::Match other{};
  return order.note(1, {message, position, tag, criteria}, other);
}

TEST(MatchOrder, InOrderIsInOrder) {
  MatchOrder order;
  EXPECT_TRUE(note(order, 0, 10, 5, kAnything));
  EXPECT_TRUE(note(order, 1, 11, 5, kAnything));
  EXPECT_TRUE(note(order, 2, 15, 5, kAnything));
}

TEST(MatchOrder, CompletionsMayComeInAnyOrder) {
  MatchOrder order;
  EXPECT_TRUE(note(order, 1, 11, 5, kAnything));
  EXPECT_TRUE(note(order, 0, 10, 5, kAnything));
}

TEST(MatchOrder, SwappedMessagesAreFound) {
  MatchOrder order;
  EXPECT_TRUE(note(order, 1, 10, 5, kAnything));
  EXPECT_FALSE(note(order, 0, 11, 5, kAnything));
}

TEST(MatchOrder, SwappedMessagesAreFoundWhicheverCompletesFirst) {
  MatchOrder order;
  EXPECT_TRUE(note(order, 0, 11, 5, kAnything));
  EXPECT_FALSE(note(order, 1, 10, 5, kAnything));
}

TEST(MatchOrder, AReceiveThatDoesNotLikeTheEarlierMessageMayTakeTheLater) {
  MatchOrder order;
  EXPECT_TRUE(note(order, 1, 10, 6, {true, 6, 0}));
  EXPECT_TRUE(note(order, 0, 11, 5, kAnything));
}

TEST(MatchOrder, LanesDoNotConcernEachOther) {
  MatchOrder order;
  MatchOrder::Match other{};
  EXPECT_TRUE(order.note(1, {1, 10, 5, kAnything}, other));
  EXPECT_TRUE(order.note(2, {0, 11, 5, kAnything}, other));
}

}  // namespace
}  // namespace cluster::sim
