// An ordered pair of hosts, sender and receiver. It is the key of everything that is kept for one direction.
// It names neither incarnations nor rails.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/packet.h"
#include "sim/seeded_random.h"

namespace cluster::sim {

struct Pair {
  HostNumber from, to;
  friend bool operator==(const Pair&, const Pair&) = default;
};

struct PairHash {
  std::size_t operator()(const Pair& pair) const { return mix64(std::uint64_t{pair.from} << 32 | pair.to); }
};

}  // namespace cluster::sim
