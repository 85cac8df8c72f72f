// Computes CRC32C with a processor instruction that continues a CRC over a word of 8 bytes. In a chain, each
// such instruction waits three cycles for the result of the previous one. So this code splits long data into
// three parts, computes the three chains at the same time, and joins the results. At best it processes 8
// bytes per cycle.
//
// To join the results, the code multiplies a CRC by entry n of word_powers() without carry. The product is
// the CRC moved forward by n words, but with two more factors. The CRC fills only the lower half of its
// 64-bit factor, which multiplies the product by x^32. Using only the lower word of the product divides it by
// x^64. The code then passes the product to the instruction as data. The instruction reduces the product and
// contributes the missing x^32. A table holds the entries for all distances that can occur.
//
// Only checksum_x86.cc and checksum_arm64.cc include this file. The rest of the provider must run on
// processors without these instructions. So the compiler may use these instructions only in functions with an
// attribute that permits them. Each of the two files defines this attribute as CLUSTER_CRC_TARGET before it
// includes this file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "wire/checksum.h"

namespace cluster::wire::fast {

/// `Instructions` provides three members. State is a word that holds a CRC. step() continues a CRC over 8, 4,
/// 2 or 1 bytes. low_product() returns the lower 64 bits of a carry-less product.
template <typename Instructions>
class Chains {
 public:
  /// Continues the state over `size` bytes; see UpdateFunction.
  CLUSTER_CRC_TARGET static std::uint32_t update(std::uint32_t state, const std::byte* at, std::size_t size) {
    return size < kChainedMin ? one_chain(state, at, size) : long_data(state, at, size);
  }

 private:
  using State = typename Instructions::State;

  static constexpr std::size_t kPartWordsMax = 256;  ///< words of one chain: 2 KB
  static constexpr std::size_t kChainedMin = 192;    ///< for shorter data, one chain is faster
  static constexpr auto kPowers = word_powers<2 * kPartWordsMax + 1>();

  /// This is a function of its own, because it needs many registers. A call for short data then need not save
  /// them.
  [[gnu::noinline]] CLUSTER_CRC_TARGET static std::uint32_t long_data(State crc, const std::byte* at,
                                                                      std::size_t size) {
    while (size >= kChainedMin) {
      std::size_t words = size / (3 * 8);
      if (words > kPartWordsMax) words = kPartWordsMax;
      crc = three_chains(crc, at, words);
      at += 3 * 8 * words;
      size -= 3 * 8 * words;
    }
    return one_chain(crc, at, size);
  }

  CLUSTER_CRC_TARGET static std::uint32_t one_chain(State crc, const std::byte* at, std::size_t size) {
    for (; size >= 32; size -= 32, at += 32) {
      crc = Instructions::step(crc, load<std::uint64_t>(at));
      crc = Instructions::step(crc, load<std::uint64_t>(at + 8));
      crc = Instructions::step(crc, load<std::uint64_t>(at + 16));
      crc = Instructions::step(crc, load<std::uint64_t>(at + 24));
    }
    for (; size >= 8; size -= 8, at += 8) crc = Instructions::step(crc, load<std::uint64_t>(at));
    if (size == 0) return static_cast<std::uint32_t>(crc);
    std::uint32_t narrow = static_cast<std::uint32_t>(crc);
    if ((size & 4) != 0) narrow = Instructions::step(narrow, load<std::uint32_t>(at));
    at += size & 4;
    if ((size & 2) != 0) narrow = Instructions::step(narrow, load<std::uint16_t>(at));
    at += size & 2;
    if ((size & 1) != 0) narrow = Instructions::step(narrow, load<std::uint8_t>(at));
    return narrow;
  }

  template <typename Word>
  CLUSTER_CRC_TARGET static Word load(const std::byte* at) {
    Word word;
    std::memcpy(&word, at, sizeof word);
    return word;
  }

  CLUSTER_CRC_TARGET static State moved(State crc, std::size_t words) {
    return Instructions::step(State{0}, Instructions::low_product(crc, kPowers[words]));
  }

  CLUSTER_CRC_TARGET static State three_chains(State first, const std::byte* at, std::size_t words) {
    State second = 0;
    State third = 0;
    const std::size_t part = words * 8;
    for (const std::byte* end = at + part; at != end; at += 8) {
      first = Instructions::step(first, load<std::uint64_t>(at));
      second = Instructions::step(second, load<std::uint64_t>(at + part));
      third = Instructions::step(third, load<std::uint64_t>(at + 2 * part));
    }
    return moved(first, 2 * words) ^ moved(second, words) ^ third;
  }
};

}  // namespace cluster::wire::fast
