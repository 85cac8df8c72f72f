// A buffer as applications pass it: in one piece, or split anywhere into slices, some of which may be empty.
// Nothing in the library may depend on where a buffer is split.
#pragma once

#include <array>

#include "protocol/ops.h"
#include "sim/seeded_random.h"

namespace cluster::sim {

/// Splits `whole` with this chance, in a million. Returns the number of slices.
template <typename Slice>
std::size_t split(SeededRandom& random, std::uint32_t chance, Slice whole,
                  std::array<Slice, protocol::kIovMax>& slices) {
  std::size_t count = 0;
  if (random.chance(chance)) {
    for (std::uint64_t cuts = random.between(1, slices.size() - 1); cuts > 0; --cuts) {
      const std::size_t part = random.below(whole.size() + 1);
      slices[count++] = whole.first(part);
      whole = whole.subspan(part);
    }
  }
  if (!whole.empty() || count != 0) slices[count++] = whole;
  return count;
}

}  // namespace cluster::sim
