// Which registrations of memory are kept, and which are not used again because the memory has changed. The
// memory is real, the device is not.
#include "os/pin_cache.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <utility>

namespace cluster::os {
namespace {

class FakePinner final : public Pinner {
 public:
  bool pin(Pin& pin) override {
    if (refusals > 0) return --refusals < 0;
    ++pins;
    pin.writable = writable;
    return true;
  }
  void unpin(Pin&) override { ++unpins; }
  bool change_use(Pin&, PinUse use) override {
    ++(use == PinUse::exposed ? exposures : concealments);
    return changes;
  }

  int refusals = 0;
  bool writable = true;
  bool changes = true;
  int pins = 0, unpins = 0, exposures = 0, concealments = 0;
};

class PinCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    watch = MemoryWatch::of_process(reason);
    if (watch == nullptr) GTEST_SKIP() << reason;
    make({});
    map();
  }
  void TearDown() override {
    cache.reset();
    if (area != nullptr) munmap(area, kArea);
  }
  void make(const PinCache::Limits& limits) { cache = std::make_unique<PinCache>(pinner, watch, limits); }
  void map() {
    void* const made = mmap(area, kArea, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | (area != nullptr ? MAP_FIXED : 0), -1, 0);
    ASSERT_NE(made, MAP_FAILED);
    area = static_cast<std::byte*>(made);
  }
  ConstBytes part(std::size_t page, std::size_t pages) const { return {area + page * kPage, pages * kPage}; }
  /// Takes a registration, and gives it back.
  void use(ConstBytes memory, PinUse how = PinUse::local, std::uint64_t owner = 1) {
    const auto pin = cache->take(owner, memory, how);
    ASSERT_TRUE(pin);
    cache->give_back(*pin);
  }
  /// Returns true if the use needs no new registration.
  bool kept(ConstBytes memory, PinUse how = PinUse::local, std::uint64_t owner = 1) {
    const int before = pinner.pins;
    use(memory, how, owner);
    return pinner.pins == before;
  }

  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kArea = 64 * kPage;
  FakePinner pinner;
  MemoryWatch* watch = nullptr;
  std::unique_ptr<PinCache> cache;
  std::byte* area = nullptr;
};

TEST_F(PinCacheTest, ARegistrationServesAgain) {
  use(part(0, 8));
  EXPECT_TRUE(kept(part(0, 8)));
  EXPECT_TRUE(kept(part(2, 3))) << "a part";
  EXPECT_FALSE(kept(part(4, 8))) << "it reaches further";
  EXPECT_FALSE(kept(part(0, 8), PinUse::local, 2)) << "another owner";
  const PinCache::Statistics now = cache->statistics();
  EXPECT_EQ(now.hits, 2u);
  EXPECT_EQ(now.misses, 3u);
  EXPECT_EQ(now.entries, 3u);
  EXPECT_EQ(now.bytes, 24 * kPage);
}

TEST_F(PinCacheTest, ThePeerLosesItsAccessWithEachUse) {
  use(part(0, 8), PinUse::exposed);
  EXPECT_EQ(pinner.concealments, 1);
  EXPECT_TRUE(kept(part(0, 8), PinUse::exposed));
  EXPECT_EQ(pinner.exposures, 1);
  EXPECT_EQ(pinner.concealments, 2);
  EXPECT_FALSE(kept(part(0, 4), PinUse::exposed)) << "the peer could read more than it may";
  EXPECT_TRUE(kept(part(0, 8))) << "for the device of this side";
  const auto local = cache->take(1, part(0, 8), PinUse::local);
  EXPECT_FALSE(kept(part(0, 8), PinUse::exposed)) << "in use otherwise";
  cache->give_back(*local);
}

TEST_F(PinCacheTest, TwoUsesAtOnceEndWithTheSecond) {
  const auto one = cache->take(1, part(0, 8), PinUse::exposed);
  const auto two = cache->take(1, part(0, 8), PinUse::exposed);
  ASSERT_TRUE(one && two);
  EXPECT_EQ(pinner.pins, 1);
  cache->give_back(*one);
  EXPECT_EQ(pinner.concealments, 0);
  cache->give_back(*two);
  EXPECT_EQ(pinner.concealments, 1);
}

TEST_F(PinCacheTest, ADeviceThatCannotTakeTheAccessAwayKeepsNothingExposed) {
  pinner.changes = false;
  use(part(0, 8), PinUse::exposed);
  EXPECT_EQ(pinner.unpins, 1);
  EXPECT_FALSE(kept(part(0, 8), PinUse::exposed));
  EXPECT_EQ(pinner.unpins, 2);
  use(part(0, 8));
  EXPECT_TRUE(kept(part(0, 8))) << "for the device of this side";
}

TEST_F(PinCacheTest, MemoryThatHasChangedIsRegisteredAnew) {
  const std::pair<const char*, std::function<void()>> changes[] = {
      {"unmapped", [&] { munmap(area, kArea); }},
      {"replaced", [] {}},
      {"moved",
       [&] {
         const std::size_t size = 8 * kPage;
         void* const place = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
         ASSERT_EQ(mremap(area, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, place), place);
         munmap(place, size);
       }},
      {"unmapped in part", [&] { munmap(area + 3 * kPage, kPage); }},
  };
  for (const auto& [what, change] : changes) {
    for (const PinUse how : {PinUse::local, PinUse::exposed}) {
      use(part(0, 8), how);
      EXPECT_TRUE(kept(part(0, 8), how)) << what;
      change();
      map();
      EXPECT_FALSE(kept(part(0, 8), how)) << what;
      EXPECT_TRUE(kept(part(0, 8), how)) << what << ": the new memory";
    }
  }
  EXPECT_GE(cache->statistics().dropped, 8u);
}

TEST_F(PinCacheTest, AForkEndsAllRegistrations) {
  use(part(0, 8));
  EXPECT_TRUE(kept(part(0, 8)));
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(kept(part(0, 8)));
  EXPECT_TRUE(kept(part(0, 8)));
}

/// The kernel announces this before it takes the pages, so what is registered shortly afterwards is not kept.
TEST_F(PinCacheTest, PagesThatAreGivenBackAreRegisteredAnew) {
  make({.settle = 1h});
  use(part(0, 8));
  use(part(20, 8));
  EXPECT_EQ(madvise(area + kPage, kPage, MADV_DONTNEED), 0);
  EXPECT_FALSE(kept(part(0, 8)));
  EXPECT_FALSE(kept(part(0, 8)));
  EXPECT_TRUE(kept(part(20, 8)));
  EXPECT_EQ(cache->statistics().entries, 1u);
}

TEST_F(PinCacheTest, WhatIsInUseEndsLater) {
  const auto pin = cache->take(1, part(0, 8), PinUse::local);
  munmap(area, kArea);
  map();
  cache->tidy();
  EXPECT_EQ(pinner.unpins, 0);
  EXPECT_FALSE(kept(part(0, 8)));
  cache->give_back(*pin);
  EXPECT_EQ(pinner.unpins, 1);
}

TEST_F(PinCacheTest, UnmappedMemoryIsGivenBackToTheKernel) {
  use(part(0, 8));
  munmap(area, kArea);
  cache->tidy();
  EXPECT_EQ(pinner.unpins, 1);
  EXPECT_EQ(cache->statistics().bytes, 0u);
  map();
}

TEST_F(PinCacheTest, WhatWasUsedLeastRecentlyGoesFirst) {
  make({.entries = 3, .bytes = 16 * kPage});
  for (std::size_t page : {0u, 4u, 8u}) use(part(page, 4));
  EXPECT_TRUE(kept(part(0, 4)));
  use(part(12, 4));
  EXPECT_EQ(cache->statistics().entries, 3u);
  EXPECT_TRUE(kept(part(0, 4)));
  EXPECT_TRUE(kept(part(8, 4)));
  EXPECT_FALSE(kept(part(4, 4)));
  use(part(20, 12));
  EXPECT_LE(cache->statistics().bytes, 16 * kPage);
  use(part(32, 20));
  EXPECT_LE(cache->statistics().bytes, 16 * kPage) << "too long to be kept";
}

TEST_F(PinCacheTest, WhatIsInUseIsNotEndedForAnother) {
  make({.entries = 2, .bytes = 16 * kPage});
  const auto one = cache->take(1, part(0, 4), PinUse::local);
  const auto two = cache->take(1, part(4, 4), PinUse::local);
  const auto three = cache->take(1, part(8, 4), PinUse::local);
  ASSERT_TRUE(one && two && three);
  EXPECT_EQ(pinner.unpins, 0);
  for (const auto& each : {one, two, three}) cache->give_back(*each);
  EXPECT_EQ(cache->statistics().entries, 2u);
}

TEST_F(PinCacheTest, ARefusalEndsWhatIsNotInUse) {
  use(part(0, 4));
  pinner.refusals = 1;
  use(part(4, 4));
  EXPECT_EQ(pinner.unpins, 1);
  pinner.refusals = 5;
  EXPECT_FALSE(cache->take(1, part(8, 4), PinUse::local));
  pinner.refusals = 0;
  use(part(8, 4));
}

TEST_F(PinCacheTest, AnOwnerThatGoesTakesItsRegistrationsAlong) {
  use(part(0, 4), PinUse::local, 1);
  use(part(0, 4), PinUse::local, 2);
  const auto pin = cache->take(1, part(8, 4), PinUse::exposed);
  ASSERT_TRUE(pin);
  cache->drop_owner(1);
  EXPECT_EQ(pinner.unpins, 2);
  EXPECT_TRUE(kept(part(0, 4), PinUse::local, 2));
}

TEST_F(PinCacheTest, MemoryThatCannotBeWrittenServesNoDeviceOfThisSide) {
  pinner.writable = false;
  use(part(0, 4), PinUse::exposed);
  EXPECT_TRUE(kept(part(0, 4), PinUse::exposed));
  pinner.writable = true;
  EXPECT_FALSE(kept(part(0, 4)));
}

TEST_F(PinCacheTest, WithoutAWatchNothingIsKept) {
  watch = nullptr;
  make({});
  use(part(0, 4));
  EXPECT_EQ(pinner.unpins, 1);
  EXPECT_FALSE(kept(part(0, 4)));
  use(part(0, 4), PinUse::exposed);
  EXPECT_EQ(pinner.concealments, 0);
}

TEST_F(PinCacheTest, AFileThatIsMappedIsNotKept) {
  const long size = kPage;
  FILE* const file = tmpfile();
  ASSERT_EQ(ftruncate(fileno(file), size), 0);
  void* const mapped = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const ConstBytes memory{static_cast<std::byte*>(mapped), kPage};
  use(memory);
  if (pinner.unpins == 0) GTEST_SKIP() << "the directory for temporary files is in memory";
  EXPECT_FALSE(kept(memory));
  munmap(mapped, kPage);
  fclose(file);
}

}  // namespace
}  // namespace cluster::os
