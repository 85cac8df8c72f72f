// What the histories of words accept, and each mistake that they must report.
#include <gtest/gtest.h>

#include "sim/digit_history.h"
#include "sim/register_history.h"

namespace cluster::sim {
namespace {

constexpr std::uint64_t kHere = 1;
constexpr std::uint64_t kThere = 2;

class DigitHistoryTest : public testing::Test {
 protected:
  std::size_t begin(std::uint64_t source = kHere) {
    const std::size_t slot = word.add(++number_, source);
    word.record(slot).accepted_at = ++time_;
    return slot;
  }
  void end(std::size_t slot) {
    word.record(slot).ended_at = ++time_;
    word.record(slot).succeeded = true;
  }
  std::string end(std::size_t slot, std::uint64_t value) {
    end(slot);
    word.record(slot).fetched = value;
    return word.fetched(slot, value);
  }
  std::string read(std::uint64_t accepted_at, std::uint64_t value) {
    return word.read({.number = ++number_,
                      .source = kThere,
                      .accepted_at = accepted_at,
                      .ended_at = ++time_,
                      .fetched = value});
  }

  DigitHistory word{DigitKind::sum, 64};
  std::uint64_t number_ = 0;
  std::uint64_t time_ = 0;
};

TEST_F(DigitHistoryTest, AcceptsAnOrderThatEveryValueShows) {
  const std::size_t first = begin();
  const std::size_t second = begin(kThere);
  EXPECT_EQ(end(second, 0), "");
  EXPECT_EQ(end(first, word.operand(second)), "");
  EXPECT_EQ(read(time_, word.operand(first) + word.operand(second)), "");
  EXPECT_EQ(word.check_final(word.operand(first) + word.operand(second)), "");
}

TEST_F(DigitHistoryTest, ReportsAnOperationThatWasExecutedTwice) {
  const std::size_t slot = begin();
  end(slot);
  EXPECT_NE(word.check_final(2 * word.operand(slot)), "");
}

TEST_F(DigitHistoryTest, ReportsAnOperationThatIsMissing) {
  const std::size_t slot = begin();
  end(slot);
  EXPECT_NE(word.check_final(0), "");
}

TEST_F(DigitHistoryTest, ReportsTwoOperationsThatFetchedTheSameValue) {
  const std::size_t first = begin();
  const std::size_t second = begin(kThere);
  EXPECT_EQ(end(first, 0), "");
  EXPECT_NE(end(second, 0), "");
}

TEST_F(DigitHistoryTest, ReportsAValueWithoutWhatHadEndedBefore) {
  end(begin());
  EXPECT_NE(end(begin(kThere), 0), "");
}

TEST_F(DigitHistoryTest, ReportsAValueThatNoOperationGave) {
  const std::size_t slot = begin();
  EXPECT_NE(end(slot, word.operand(slot) << 2), "");
}

TEST_F(DigitHistoryTest, ReportsAReadThatGoesBackInTime) {
  const std::size_t slot = begin();
  EXPECT_EQ(read(time_, word.operand(slot)), "");
  const std::uint64_t later = ++time_;
  EXPECT_NE(read(later, 0), "");
}

TEST_F(DigitHistoryTest, ReportsAnOperationThatOvertookAnEarlierOneOfItsProcess) {
  const std::size_t first = begin();
  const std::size_t second = begin();
  EXPECT_EQ(end(second, 0), "");
  EXPECT_EQ(end(first, word.operand(second)), "");
  EXPECT_NE(word.check_final(word.operand(first) + word.operand(second)), "");
}

TEST_F(DigitHistoryTest, KnowsEveryKindOfOperation) {
  for (const DigitKind kind : {DigitKind::sum, DigitKind::bxor, DigitKind::bor, DigitKind::band}) {
    DigitHistory each(kind, 16);
    const std::size_t slot = each.add(1, kHere);
    each.record(slot).accepted_at = 1;
    const std::uint64_t operand = each.operand(slot);
    const std::uint64_t value = kind == DigitKind::band ? each.initial() & operand : each.initial() + operand;
    each.record(slot).succeeded = true;
    EXPECT_EQ(each.check_final(value), "");
    EXPECT_NE(each.check_final(each.initial()), "");
  }
}

class RegisterHistoryTest : public testing::Test {
 protected:
  using Effect = RegisterHistory::Effect;

  std::size_t begin(Effect effect = Effect::writes, std::uint64_t source = kHere,
                    std::uint64_t comparand = 0) {
    const std::size_t index = word.add(++number_, source, effect, comparand);
    word.record(index).accepted_at = ++time_;
    return index;
  }
  void end(std::size_t index) {
    word.record(index).ended_at = ++time_;
    word.record(index).succeeded = true;
  }
  std::string end(std::size_t index, std::uint64_t value) {
    end(index);
    word.record(index).fetched = value;
    return word.fetched(index, value);
  }

  RegisterHistory word;
  std::uint64_t number_ = 0;
  std::uint64_t time_ = 0;
};

TEST_F(RegisterHistoryTest, AcceptsAnOrderThatEveryValueShows) {
  EXPECT_EQ(end(begin(), 0), "");
  EXPECT_EQ(end(begin(Effect::writes_if_equal, kThere, 1), 1), "");
  EXPECT_EQ(end(begin(Effect::writes_if_equal, kThere, 1), 2), "");
  EXPECT_EQ(end(begin(Effect::reads), 2), "");
  end(begin());
  EXPECT_EQ(word.check_final(5), "");
}

TEST_F(RegisterHistoryTest, ReportsAValueThatWasReplacedTwice) {
  const std::size_t first = begin();
  const std::size_t second = begin(Effect::writes, kThere);
  EXPECT_EQ(end(first, 0), "");
  EXPECT_NE(end(second, 0), "");
}

TEST_F(RegisterHistoryTest, ReportsAValueThatNoOperationWrote) { EXPECT_NE(end(begin(), 7), ""); }

TEST_F(RegisterHistoryTest, ReportsAStaleValue) {
  EXPECT_EQ(end(begin(), 0), "");
  EXPECT_NE(end(begin(Effect::reads, kThere), 0), "");
}

TEST_F(RegisterHistoryTest, ReportsAValueThatWasOverwrittenBefore) {
  end(begin());
  end(begin());
  EXPECT_NE(end(begin(Effect::reads, kThere), 1), "");
}

TEST_F(RegisterHistoryTest, ReportsAWriteThatIsMissing) {
  EXPECT_EQ(end(begin(), 0), "");
  EXPECT_NE(word.check_final(0), "");
}

TEST_F(RegisterHistoryTest, ReportsAValueThatVanished) {
  const std::size_t first = begin();
  const std::size_t second = begin(Effect::writes, kThere);
  EXPECT_EQ(end(first, 0), "");
  EXPECT_EQ(end(second, 1), "");
  const std::size_t third = begin(Effect::writes_if_equal, kHere, 2);
  EXPECT_EQ(end(third, 2), "");
  EXPECT_EQ(word.check_final(3), "");
  EXPECT_NE(word.check_final(2), "") << "it was replaced by the third";
}

TEST_F(RegisterHistoryTest, ReportsAComparisonThatFailedAndYetWrote) {
  EXPECT_EQ(end(begin(), 0), "");
  EXPECT_EQ(end(begin(Effect::writes_if_equal, kThere, 0), 1), "");
  EXPECT_NE(word.check_final(2), "");
}

}  // namespace
}  // namespace cluster::sim
