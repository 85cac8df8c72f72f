// An access that is left to the target.
#include "sim/sim_regions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace cluster::sim {
namespace {

/// The simulator found this (seed 17443150295646212591). One half of an unreported write was copied. When
/// the target had written the other half, the oracle regarded the write as complete. Then the target wrote
/// the first half again.
TEST(SimRegions, AWriteThatIsLeftToTheTargetCopiesNothing) {
  std::array<std::byte, 64> memory{};
  std::array<std::byte, 64> source;
  source.fill(std::byte{1});
  protocol::RegionTable table;
  table.add(1, {memory.data(), 0, memory.size(), true, true, nullptr, nullptr});
  std::size_t left = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SimRegions regions(seed, 2);
    regions.set(1, &table);
    const auto connector = regions.connector(0);
    const auto reached = connector->connect(address_of(1));
    for (int i = 0; reached != nullptr && i < 50; ++i) {
      memory.fill(std::byte{0});
      const ConstBytes slice = source;
      const auto outcome = reached->write(1, 0, {{&slice, 1}, 0, source.size()});
      left += outcome == carrier::Outcome::unsuited ? 1 : 0;
      const auto copied = std::ranges::count(memory, std::byte{1});
      ASSERT_EQ(copied, outcome == carrier::Outcome::done ? 64 : 0);
    }
  }
  EXPECT_GT(left, 0u);
}

}  // namespace
}  // namespace cluster::sim
