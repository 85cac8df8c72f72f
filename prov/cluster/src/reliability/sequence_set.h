// A set of sequences in a moving window. It has one bit for each sequence of the window. A walk over the
// members examines 64 bits at a time, so it quickly skips all other sequences.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/sequence.h"

namespace cluster::reliability {

/// The owner keeps this invariant: all members lie in a span of at most `capacity` sequences.
class SequenceSet {
 public:
  explicit SequenceSet(std::size_t capacity)
      : words_(std::bit_ceil(std::max<std::size_t>(capacity, kWordBits)) / kWordBits),
        mask_(static_cast<std::uint32_t>(words_.size() * kWordBits - 1)) {}

  std::size_t footprint() const { return words_.capacity() * sizeof(std::uint64_t); }

  bool contains(Sequence s) const { return (word_of(s) & bit_of(s)) != 0; }
  void insert(Sequence s) { words_[(s.value & mask_) / kWordBits] |= bit_of(s); }
  void erase(Sequence s) { words_[(s.value & mask_) / kWordBits] &= ~bit_of(s); }
  /// Inserts the span [from, end), which must not be longer than the capacity.
  void insert(Sequence from, Sequence end) {
    each_word(from, end, [](std::uint64_t& word, std::uint64_t bits) { word |= bits; });
  }
  /// Erases the span [from, end), which must not be longer than the capacity.
  void erase(Sequence from, Sequence end) {
    each_word(from, end, [](std::uint64_t& word, std::uint64_t bits) { word &= ~bits; });
  }
  /// Returns the first member in [from, end), or `end`. The span must not be longer than the capacity.
  Sequence next_member(Sequence from, Sequence end) const { return find(from, end, 0); }
  /// Returns the first sequence in [from, end) that is not a member, or `end`.
  Sequence next_gap(Sequence from, Sequence end) const { return find(from, end, ~std::uint64_t{0}); }

 private:
  static constexpr std::uint32_t kWordBits = 64;

  std::uint64_t word_of(Sequence s) const { return words_[(s.value & mask_) / kWordBits]; }
  static std::uint64_t bit_of(Sequence s) { return std::uint64_t{1} << (s.value % kWordBits); }
  template <typename Change>
  void each_word(Sequence from, Sequence end, Change&& change) {
    while (from.before(end)) {
      const std::uint32_t skip = from.value % kWordBits;
      const auto left = static_cast<std::uint32_t>(end - from);
      const std::uint32_t count = std::min(kWordBits - skip, left);
      change(words_[(from.value & mask_) / kWordBits], ~std::uint64_t{0} >> (kWordBits - count) << skip);
      from = from + count;
    }
  }
  Sequence find(Sequence from, Sequence end, std::uint64_t flip) const {
    while (from.before(end)) {
      const std::uint32_t skip = from.value % kWordBits;
      const std::uint64_t rest = (word_of(from) ^ flip) >> skip;
      if (rest != 0) {
        const Sequence hit = from + static_cast<std::uint32_t>(std::countr_zero(rest));
        return hit.before(end) ? hit : end;
      }
      from = from + (kWordBits - skip);
    }
    return end;
  }

  std::vector<std::uint64_t> words_;
  std::uint32_t mask_;
};

}  // namespace cluster::reliability
