// SipHash-2-4 (Aumasson and Bernstein, 2012) is a keyed hash of a few words. Nobody can compute the hash
// without the key, and the hash values do not reveal the key.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace cluster {

class SipHash {
 public:
  /// Pass random numbers in braces: `hash{random.next(), random.next()}`. With braces, the left call is
  /// always made first. With parentheses, the compiler would choose the order, and the same seed of the
  /// simulator could give different runs on different machines.
  SipHash(std::uint64_t low, std::uint64_t high) : low_(low), high_(high) {}

  std::uint64_t operator()(std::span<const std::uint64_t> words) const {
    State state{low_ ^ 0x736f6d6570736575, high_ ^ 0x646f72616e646f6d, low_ ^ 0x6c7967656e657261,
                high_ ^ 0x7465646279746573};
    for (const std::uint64_t word : words) state.take(word);
    state.take(std::uint64_t{words.size() * sizeof(std::uint64_t)} << 56);
    state.v2 ^= 0xff;
    for (int i = 0; i < 4; ++i) state.round();
    return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
  }

 private:
  struct State {
    std::uint64_t v0, v1, v2, v3;

    void take(std::uint64_t word) {
      v3 ^= word;
      round();
      round();
      v0 ^= word;
    }
    void round() {
      v0 += v1;
      v2 += v3;
      v1 = std::rotl(v1, 13) ^ v0;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 = std::rotl(v0, 32);
      v2 += v1;
      v0 += v3;
      v1 = std::rotl(v1, 17) ^ v2;
      v3 = std::rotl(v3, 21) ^ v0;
      v2 = std::rotl(v2, 32);
    }
  };

  std::uint64_t low_;
  std::uint64_t high_;
};

}  // namespace cluster
