#include "shm/layout.h"

#include <algorithm>
#include <bit>

namespace cluster::shm {
namespace {

constexpr std::uint32_t kArenaBytesPerSlot = 1024;

bool power_of_two_within(std::uint32_t value, std::uint32_t least, std::uint32_t most) {
  return std::has_single_bit(value) && value >= least && value <= most;
}

}  // namespace

Geometry Geometry::for_payload(std::size_t ring_bytes) {
  const std::size_t wanted = std::clamp<std::size_t>(ring_bytes, kArenaMin, kArenaMax);
  Geometry geometry;
  geometry.arena_bytes = static_cast<std::uint32_t>(std::bit_ceil(wanted));
  geometry.slots = std::clamp(geometry.arena_bytes / kArenaBytesPerSlot, kSlotsMin, kSlotsMax);
  return geometry;
}

bool Geometry::valid() const {
  return power_of_two_within(slots, kSlotsMin, kSlotsMax) &&
         power_of_two_within(arena_bytes, kArenaMin, kArenaMax);
}

}  // namespace cluster::shm
