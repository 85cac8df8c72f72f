#include "reliability/sequence_set.h"

#include <gtest/gtest.h>

#include <set>

namespace cluster::reliability {
namespace {

TEST(SequenceSet, FindsMembersAndGapsLikeASlowSet) {
  for (const std::uint32_t base : {0u, 77u, 0xffffffc1u, 0xfffffff0u}) {
    SequenceSet set(256);
    std::set<std::uint32_t> slow;  // distances from base
    std::uint32_t state = base + 1;
    for (int i = 0; i < 400; ++i) {
      state = state * 1664525 + 1013904223;
      const std::uint32_t distance = (state >> 10) % 256;
      const Sequence s{base + distance};
      if (i % 3 == 2) {
        set.erase(s);
        slow.erase(distance);
      } else {
        set.insert(s);
        slow.insert(distance);
      }
      const std::uint32_t from = (state >> 20) % 256;
      const Sequence end{base + 256};
      std::uint32_t member = from;
      while (member < 256 && !slow.contains(member)) ++member;
      std::uint32_t gap = from;
      while (gap < 256 && slow.contains(gap)) ++gap;
      ASSERT_EQ(set.next_member({base + from}, end).value, base + member);
      ASSERT_EQ(set.next_gap({base + from}, end).value, base + gap);
      ASSERT_EQ(set.contains({base + from}), slow.contains(from));
    }
  }
}

TEST(SequenceSet, AnEmptySpanHasNothing) {
  SequenceSet set(64);
  set.insert({5});
  EXPECT_EQ(set.next_member({5}, {5}), (Sequence{5}));
  EXPECT_EQ(set.next_member({0}, {5}), (Sequence{5}));
  EXPECT_EQ(set.next_member({0}, {6}), (Sequence{5}));
}

TEST(SequenceSet, SpansGoInAndOutAsTheirMembersDo) {
  for (const std::uint32_t base : {0u, 50u, 0xffffff80u, 0xfffffff0u}) {
    SequenceSet spans(256);
    SequenceSet singles(256);
    std::uint32_t state = base + 1;
    for (int i = 0; i < 300; ++i) {
      state = state * 1664525 + 1013904223;
      const Sequence from{base + (state >> 10) % 200};
      const Sequence end = from + (state >> 20) % (base + 257 - from.value);
      for (Sequence s = from; s != end; ++s) i % 2 == 0 ? singles.insert(s) : singles.erase(s);
      i % 2 == 0 ? spans.insert(from, end) : spans.erase(from, end);
      for (std::uint32_t k = 0; k < 256; ++k)
        ASSERT_EQ(spans.contains({base + k}), singles.contains({base + k}));
    }
  }
}

}  // namespace
}  // namespace cluster::reliability
