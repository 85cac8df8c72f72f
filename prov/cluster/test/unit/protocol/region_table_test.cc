// The table of registered memory alone: what becomes of a key whose registration fails.
#include "protocol/region_table.h"

#include <gtest/gtest.h>

#include <array>
#include <new>

namespace cluster::protocol {
namespace {

/// There is no memory for an offer to the peers of this node.
class NoOffers final : public RegionOffers {
 public:
  explicit NoOffers(bool& has_memory) : has_memory_(has_memory) {}
  void offer(std::uint64_t, const carrier::OfferedRegion&) override {
    if (!has_memory_) throw std::bad_alloc();
  }
  void change(std::uint64_t, const carrier::OfferedRegion&) override {}
  bool withdraw(std::uint64_t) override { return true; }
  std::shared_ptr<void> serve(const SocketAddress&, bool, bool) override { return nullptr; }

 private:
  bool& has_memory_;
};

TEST(RegionTableTest, AKeyWhoseRegistrationFailsStaysFree) {
  bool has_memory = false;
  RegionTable table(nullptr, std::make_unique<NoOffers>(has_memory));
  std::array<std::byte, 8> memory{};
  const MemoryRegion region{.base = memory.data(), .length = memory.size(), .readable = true};
  EXPECT_THROW(table.add(5, region), std::bad_alloc);
  EXPECT_FALSE(table.allows({0, 5, 8}, Access::read));
  has_memory = true;
  EXPECT_TRUE(table.add(5, region));
  EXPECT_FALSE(table.add(5, region)) << "in use";
  EXPECT_TRUE(table.allows({0, 5, 8}, Access::read));
}

}  // namespace
}  // namespace cluster::protocol
