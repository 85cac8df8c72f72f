// What the sides did to the words of one slot, and whether one order explains it (sim/linearizability.h).
//
// A slot has two words that atomics change, of 1, 2, 4 or 8 bytes as its round decides, and two that aligned
// puts and gets of 8 bytes do. Operations of one side take effect in the order that was asked for: all of them,
// or those behind a fence, and atomics among themselves always.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/linearizability.h"

namespace conformance {

using Kind = cluster::sim::WordOperation::Kind;

inline constexpr std::size_t kAtomicWords = 2;
inline constexpr std::size_t kWords = 4;

/// The elements of the atomics of a round.
inline unsigned bits_of(std::size_t round) { return 8u << round % 4; }

/// What a side did, as it is reported to the owner of the slot.
struct Record {
  std::uint32_t round = 0;
  std::uint32_t word = 0;
  Kind kind = Kind::read;
  bool fetches = false;
  bool fenced = false;
  bool by_processor = false;
  std::uint64_t operand = 0;
  std::uint64_t comparand = 0;
  std::uint64_t fetched = 0;
  std::uint64_t began = 0;
  std::uint64_t ended = cluster::sim::WordOperation::kNever;
};

using SlotValues = std::array<std::uint64_t, kWords>;

/// Empty if there is an order of the records of this round, an entry of `all` per side, that explains what was
/// fetched and what is left; else the history. Nothing if there are too many orders to try: on a busy machine all
/// operations of a round may overlap.
std::optional<std::string> why_unexplained(std::size_t round, const std::vector<std::vector<Record>>& all,
                                           const SlotValues& last, bool ordered);

}  // namespace conformance
