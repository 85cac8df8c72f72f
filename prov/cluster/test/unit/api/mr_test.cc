// Memory regions: registration, and the counters of remote accesses.
#include <rdma/fi_rma.h>

#include <array>
#include <map>

#include "unit/api/api_world.h"

namespace cluster::api::test {
namespace {

/// Two endpoints; the left one writes into and reads out of the memory of the right one.
class MrTest : public PairTest {
 protected:
  void begin() {
    info.info.caps |= FI_RMA | FI_RMA_EVENT;
    start();
  }
  int expose(std::uint64_t key, std::uint64_t access, std::uint64_t flags, fid_mr*& region) {
    return fi_mr_reg(domain, memory.data(), memory.size(), access, 0, key, flags, &region, nullptr);
  }
  void write(std::uint64_t key) {
    ASSERT_EQ(fi_write(left.endpoint, memory.data(), 8, nullptr, to_right, 0, key, nullptr), 0);
    fi_cq_tagged_entry entry{};
    ASSERT_EQ(await(left.sends, entry), 1);
  }

  std::array<char, 64> memory{};
};

TEST_F(MrTest, AcceptsRmaEventAndNoOtherFlag) {
  fid_mr* region = nullptr;
  ASSERT_EQ(expose(5, FI_REMOTE_WRITE, FI_RMA_EVENT, region), 0);
  EXPECT_EQ(fi_close(&region->fid), 0);
  EXPECT_EQ(expose(5, FI_REMOTE_WRITE, FI_RMA_PMEM, region), -FI_EBADFLAGS);
  EXPECT_EQ(expose(5, FI_REMOTE_WRITE, FI_RMA_EVENT | FI_RMA_PMEM, region), -FI_EBADFLAGS);
}

TEST_F(MrTest, TheProviderDrawsKeysWhereItMay) {
  info.domain.mr_mode = FI_MR_BASIC;
  fid_domain* drawing = nullptr;
  ASSERT_EQ(fi_domain(fabric, &info.info, &drawing, nullptr), 0);
  std::array<fid_mr*, 2> regions{};
  for (fid_mr*& region : regions) {
    ASSERT_EQ(fi_mr_reg(drawing, memory.data(), memory.size(), FI_REMOTE_WRITE, 0, 5, 0, &region, nullptr),
              0);
    EXPECT_GT(fi_mr_key(region), 5u);
  }
  EXPECT_NE(fi_mr_key(regions[0]), fi_mr_key(regions[1]));
  for (fid_mr* region : regions) EXPECT_EQ(fi_close(&region->fid), 0);
  EXPECT_EQ(fi_close(&drawing->fid), 0);
}

TEST_F(MrTest, ALocalRegionIsNotCountedForAnotherRegionWithItsKey) {
  begin();
  fid_cntr* counter = open_cntr();
  fid_mr* exposed = nullptr;
  fid_mr* local = nullptr;
  ASSERT_EQ(expose(5, FI_REMOTE_WRITE, 0, exposed), 0);
  ASSERT_EQ(expose(5, FI_SEND | FI_RECV, 0, local), 0);
  ASSERT_EQ(fi_mr_bind(local, &counter->fid, FI_REMOTE_WRITE), 0);
  write(5);
  EXPECT_EQ(fi_cntr_read(counter), 0u);
  EXPECT_EQ(fi_close(&local->fid), 0);
  EXPECT_EQ(fi_close(&counter->fid), 0);
  EXPECT_EQ(fi_close(&exposed->fid), 0);
}

/// Keeps what a device would know.
class KeptRegions final : public carrier::MemoryRegistrar {
 public:
  void registered(const carrier::RegisteredRegion& region) noexcept override {
    EXPECT_TRUE(known.emplace(region.handle, region).second) << "the handle is still in use";
  }
  void closed(const carrier::RegisteredRegion& region) noexcept override {
    EXPECT_EQ(known.erase(region.handle), 1u);
  }
  std::map<void*, carrier::RegisteredRegion> known;
};

TEST_F(MrTest, TransportsLearnOfEachRegionAndOfItsEnd) {
  KeptRegions early, late;
  fid_mr* local = nullptr;
  fid_mr* exposed = nullptr;
  fid_mr* none = nullptr;
  begin();
  carrier::RegisteredMemory& all = *platform.last_memory;
  all.add(early);
  ASSERT_EQ(expose(5, FI_SEND | FI_RECV, 0, local), 0);
  ASSERT_EQ(expose(5, FI_REMOTE_READ, 0, exposed), 0);
  EXPECT_EQ(expose(5, FI_REMOTE_WRITE, 0, none), -FI_ENOKEY);
  ASSERT_EQ(early.known.size(), 2u);
  all.add(late);
  EXPECT_EQ(late.known.size(), 2u) << "those that exist";
  const carrier::RegisteredRegion& region = late.known[fi_mr_desc(local)];
  EXPECT_EQ(static_cast<void*>(region.base), memory.data());
  EXPECT_EQ(region.length, memory.size());
  EXPECT_TRUE(region.filled_here && !region.readable && !region.writable);
  const carrier::RegisteredRegion& shown = late.known[fi_mr_desc(exposed)];
  EXPECT_TRUE(!shown.filled_here && shown.readable && !shown.writable && shown.key == 5);
  EXPECT_EQ(fi_close(&local->fid), 0);
  EXPECT_EQ(early.known.size(), 1u);
  all.remove(early);
  for (int i = 0; i < 20; ++i) {  // the allocator gives the same object again
    ASSERT_EQ(expose(6, FI_SEND, 0, local), 0);
    EXPECT_TRUE(late.known.contains(fi_mr_desc(local)));
    EXPECT_EQ(fi_close(&local->fid), 0);
  }
  EXPECT_EQ(fi_close(&exposed->fid), 0);
  EXPECT_TRUE(late.known.empty());
  EXPECT_EQ(early.known.size(), 1u) << "it was not told any more";
  all.remove(late);
}

TEST_F(MrTest, ReadingARegionsCounterMakesProgressOnItsEndpoints) {
  fid_cntr* early = open_cntr();
  fid_cntr* late = open_cntr();
  fid_mr* one = nullptr;
  fid_mr* other = nullptr;
  ASSERT_EQ(expose(5, FI_REMOTE_WRITE, FI_RMA_EVENT, one), 0);
  ASSERT_EQ(fi_mr_bind(one, &early->fid, FI_REMOTE_WRITE), 0);
  begin();
  ASSERT_EQ(expose(6, FI_REMOTE_WRITE, FI_RMA_EVENT, other), 0);
  ASSERT_EQ(fi_mr_bind(other, &late->fid, FI_REMOTE_WRITE), 0);
  std::uint64_t key = 5;
  for (fid_cntr* counter : {early, late}) {
    ASSERT_EQ(fi_write(left.endpoint, memory.data(), 8, nullptr, to_right, 0, key++, nullptr), 0);
    for (int turn = 0; turn < 100000 && fi_cntr_read(counter) == 0; ++turn)
      fi_cq_read(left.sends, nullptr, 0);
    EXPECT_EQ(fi_cntr_read(counter), 1u);
    fi_cq_tagged_entry entry{};
    EXPECT_EQ(await(left.sends, entry), 1);
  }
  EXPECT_EQ(fi_close(&one->fid), 0);
  EXPECT_EQ(fi_close(&early->fid), 0);
  EXPECT_EQ(fi_close(&other->fid), 0);
  EXPECT_EQ(fi_close(&late->fid), 0);
}

}  // namespace
}  // namespace cluster::api::test
