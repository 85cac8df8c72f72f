// What the search accepts, and each mistake that it must detect.
#include "sim/linearizability.h"

#include <gtest/gtest.h>

namespace cluster::sim {
namespace {

using Kind = WordOperation::Kind;
using Verdict = Linearizability::Verdict;

class LinearizabilityTest : public testing::Test {
 protected:
  /// Appends an operation that lasted from `began` to `ended` for its caller.
  WordOperation& add(Kind kind, std::uint64_t operand, std::uint64_t began, std::uint64_t ended) {
    WordOperation operation;
    operation.kind = kind;
    operation.number = history.size() + 1;
    operation.operand = operand;
    operation.began = began;
    operation.ended = ended;
    return history.emplace_back(operation);
  }
  void fetch(Kind kind, std::uint64_t operand, std::uint64_t fetched, std::uint64_t began,
             std::uint64_t ended) {
    add(kind, operand, began, ended).fetched = fetched;
  }
  Verdict judge(std::vector<std::uint64_t> final = {}, unsigned bits = 64) const {
    return Linearizability({{.bits = bits}, {.bits = bits}}).judge(history, final);
  }
  std::vector<WordOperation> history;
};

TEST_F(LinearizabilityTest, OperationsAtOneTimeMayTakeEffectInAnyOrder) {
  fetch(Kind::sum, 1, 2, 10, 20);
  fetch(Kind::sum, 2, 0, 11, 19);
  fetch(Kind::read, 0, 2, 12, 18);
  EXPECT_EQ(judge({3}), Verdict::explained);
}

TEST_F(LinearizabilityTest, TwoExecutedAtOnceLoseOne) {
  fetch(Kind::sum, 1, 0, 10, 20);
  fetch(Kind::sum, 2, 0, 11, 19);
  EXPECT_EQ(judge(), Verdict::impossible);
}

TEST_F(LinearizabilityTest, ALostOperationIsMissedAtTheEnd) {
  add(Kind::sum, 1, 10, 20);
  EXPECT_EQ(judge({0}), Verdict::impossible);
  EXPECT_EQ(judge({1}), Verdict::explained);
}

TEST_F(LinearizabilityTest, ADoubledOperationShows) {
  add(Kind::sum, 1, 10, 20);
  EXPECT_EQ(judge({2}), Verdict::impossible);
}

TEST_F(LinearizabilityTest, ACompletionThatComesTooEarlyIsContradictedByAReader) {
  add(Kind::write, 7, 10, 20);
  fetch(Kind::read, 0, 0, 21, 30);
  EXPECT_EQ(judge({7}), Verdict::impossible);
  history[1].began = 20;  // now the two overlap
  EXPECT_EQ(judge({7}), Verdict::explained);
}

TEST_F(LinearizabilityTest, AStaleValueIsNotReadAfterANewerOne) {
  add(Kind::write, 7, 10, 100);
  fetch(Kind::read, 0, 7, 11, 20);
  fetch(Kind::read, 0, 0, 30, 40);
  EXPECT_EQ(judge({7}), Verdict::impossible);
}

TEST_F(LinearizabilityTest, ATornValueWasNeverWritten) {
  add(Kind::write, 0x1111111111111111, 10, 20);
  fetch(Kind::read, 0, 0x11111111, 11, 19);
  EXPECT_EQ(judge({0x1111111111111111}), Verdict::impossible);
}

TEST_F(LinearizabilityTest, AnOrderThatWasAskedForHoldsAcrossWords) {
  add(Kind::write, 1, 10, 100).word = 0;  // data
  WordOperation& flag = add(Kind::write, 1, 11, 100);
  flag.word = 1;
  WordOperation& look = add(Kind::read, 0, 20, 30);
  look.word = 1;
  look.fetched = 1;
  fetch(Kind::read, 0, 0, 31, 40);  // finds the old data
  EXPECT_EQ(judge({1, 1}), Verdict::explained);
  history[1].after = {0};
  EXPECT_EQ(judge({1, 1}), Verdict::impossible);
}

TEST_F(LinearizabilityTest, WhatFailedMayHaveTakenEffectOrNot) {
  add(Kind::sum, 1, 10, WordOperation::kNever).certain = false;
  fetch(Kind::read, 0, 0, 20, 30);
  EXPECT_EQ(judge({0}), Verdict::explained);
  EXPECT_EQ(judge({1}), Verdict::explained);
  EXPECT_EQ(judge({2}), Verdict::impossible);
}

TEST_F(LinearizabilityTest, NarrowWordsWrapAround) {
  fetch(Kind::sum, 200, 0, 10, 20);
  fetch(Kind::sum, 100, 200, 21, 30);
  EXPECT_EQ(judge({44}, 8), Verdict::explained);
}

TEST_F(LinearizabilityTest, ComparisonsReplaceIfTheComparandComparesSo) {
  WordOperation operation;
  operation.operand = 9;
  operation.comparand = 4;
  const auto becomes = [&](Kind kind, std::uint64_t value) {
    operation.kind = kind;
    return applied(operation, value, 64);
  };
  EXPECT_EQ(becomes(Kind::swap_if_equal, 4), 9u);
  EXPECT_EQ(becomes(Kind::swap_if_equal, 5), 5u);
  EXPECT_EQ(becomes(Kind::swap_if_not_equal, 5), 9u);
  EXPECT_EQ(becomes(Kind::swap_if_less_or_equal, 4), 9u);
  EXPECT_EQ(becomes(Kind::swap_if_less, 5), 9u);
  EXPECT_EQ(becomes(Kind::swap_if_less, 4), 4u);
  EXPECT_EQ(becomes(Kind::swap_if_greater_or_equal, 4), 9u);
  EXPECT_EQ(becomes(Kind::swap_if_greater, 3), 9u);
  EXPECT_EQ(becomes(Kind::swap_masked, 0xF0), 0xF0u);
}

// Four origins with eight operations each, all at one time. The search remembers states, so it does not take
// long.
TEST_F(LinearizabilityTest, LongChainsAtOneTimeAreDecided) {
  for (std::uint32_t origin = 0; origin < 4; ++origin) {
    for (std::uint32_t step = 0; step < 8; ++step) {
      WordOperation& operation = add(Kind::sum, 1, 10, 100);
      const auto index = static_cast<std::uint32_t>(history.size() - 1);
      if (step > 0) operation.after = {index - 1};
    }
  }
  EXPECT_EQ(judge({32}), Verdict::explained);
  EXPECT_EQ(judge({31}), Verdict::impossible);
}

}  // namespace
}  // namespace cluster::sim
