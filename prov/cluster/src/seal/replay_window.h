// Which of a peer's counters have been seen (RFC 4303 3.4.3, with 1,024 places): frames may overtake each
// other, but none is taken twice, and none that is so late that it cannot be known.
//
// Invariant: a counter is marked only after its frame was verified, so that a forger moves nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace cluster::seal {

class ReplayWindow {
 public:
  static constexpr std::uint64_t kPlaces = 1024;

  /// Counters begin at 1.
  bool is_new(std::uint64_t counter) const {
    if (counter == 0 || counter + kPlaces <= newest_) return false;
    return counter > newest_ || (word(counter) & bit(counter)) == 0;
  }
  /// Of a frame that was verified; it is new.
  void mark(std::uint64_t counter) {
    if (counter > newest_ + kPlaces) {
      words_.fill(0);
      newest_ = counter;
    }
    for (; newest_ < counter; ++newest_) word(newest_ + 1) &= ~bit(newest_ + 1);
    word(counter) |= bit(counter);
  }
  /// The largest one that was marked.
  std::uint64_t newest() const { return newest_; }

 private:
  static constexpr std::size_t kWords = kPlaces / 64;

  static std::uint64_t bit(std::uint64_t counter) { return std::uint64_t{1} << counter % 64; }
  std::uint64_t& word(std::uint64_t counter) { return words_[counter / 64 % kWords]; }
  const std::uint64_t& word(std::uint64_t counter) const { return words_[counter / 64 % kWords]; }

  std::uint64_t newest_ = 0;
  std::array<std::uint64_t, kWords> words_{};
};

}  // namespace cluster::seal
