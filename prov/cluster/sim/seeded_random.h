// The random numbers of a simulation: xoshiro256++ (Blackman and Vigna), seeded through SplitMix64. All
// numbers are integers, so one seed gives the same run on every machine and with every compiler. Each
// purpose has a stream of its own. If one purpose draws more numbers or fewer, the other streams do not
// change.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/environment.h"
#include "base/units.h"

namespace cluster::sim {

/// One step of SplitMix64, which spreads a value over 64 bits.
constexpr std::uint64_t mix64(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15u;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

/// Makes a seed of any text. Tests use the commit on which they run.
constexpr std::uint64_t seed_of_text(std::string_view text) {
  std::uint64_t seed = text.size();
  for (const char letter : text) seed = mix64(seed ^ static_cast<unsigned char>(letter));
  return seed;
}

/// Probabilities are whole parts in a million.
inline constexpr std::uint32_t kMillion = 1'000'000;

class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) {
    for (std::uint64_t& word : state_) word = seed = mix64(seed);
  }
  /// Returns a stream of its own for the `index`-th object that serves `purpose`.
  static SeededRandom stream(std::uint64_t seed, std::uint64_t purpose, std::uint64_t index = 0) {
    return SeededRandom(mix64(mix64(seed ^ (purpose << 56)) + index));
  }

  std::uint64_t next() override {
    const std::uint64_t result = rotate(state_[0] + state_[3], 23) + state_[0];
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = rotate(state_[3], 45);
    return result;
  }
  /// Returns a number in [0, bound). `bound` must be below 2^32.
  std::uint64_t below(std::uint64_t bound) { return (next() >> 32) * bound >> 32; }
  /// Returns a number in [low, high].
  std::uint64_t between(std::uint64_t low, std::uint64_t high) { return low + below(high - low + 1); }
  Duration between(Duration low, Duration high) {
    const auto span = static_cast<std::uint64_t>((high - low).count());
    return low + Duration(static_cast<std::int64_t>(next() % (span + 1)));
  }
  bool chance(std::uint32_t per_million) { return per_million != 0 && below(kMillion) < per_million; }
  template <typename Item, std::size_t count>
  const Item& pick(const std::array<Item, count>& items) {
    return items[below(count)];
  }

 private:
  static std::uint64_t rotate(std::uint64_t value, int by) { return value << by | value >> (64 - by); }

  std::array<std::uint64_t, 4> state_;
};

}  // namespace cluster::sim
