#include "os/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace cluster::os {
namespace {

constexpr std::size_t kThreePages = 3 * 4096;

TEST(SharedMemory, IsSeenByBoth) {
  std::string reason;
  Descriptor file;
  SharedMemory mine = SharedMemory::create(kThreePages, file, reason);
  ASSERT_TRUE(mine) << reason;
  SharedMemory theirs = SharedMemory::map(file, kThreePages, reason);
  ASSERT_TRUE(theirs) << reason;
  EXPECT_EQ(mine.bytes().size(), kThreePages);
  EXPECT_EQ(mine.bytes()[kThreePages - 1], std::byte{0});
  mine.bytes()[kThreePages - 1] = std::byte{5};
  EXPECT_EQ(theirs.bytes()[kThreePages - 1], std::byte{5});
}

TEST(SharedMemory, OutlivesItsCreatorAndItsDescriptor) {
  std::string reason;
  Descriptor file;
  SharedMemory theirs;
  {
    SharedMemory mine = SharedMemory::create(kThreePages, file, reason);
    ASSERT_TRUE(mine) << reason;
    theirs = SharedMemory::map(file, kThreePages, reason);
    mine.bytes()[0] = std::byte{5};
  }
  file.reset();
  ASSERT_TRUE(theirs);
  EXPECT_EQ(theirs.bytes()[0], std::byte{5});
}

TEST(SharedMemory, CannotBeResized) {
  std::string reason;
  Descriptor file;
  const SharedMemory mine = SharedMemory::create(kThreePages, file, reason);
  ASSERT_TRUE(mine) << reason;
  EXPECT_NE(::ftruncate(file.number(), 0), 0);
  EXPECT_NE(::ftruncate(file.number(), 2 * kThreePages), 0);
}

Descriptor unsealed(int seals) {
  Descriptor file(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(file.number(), kThreePages), 0);
  if (seals != 0) {
    EXPECT_EQ(::fcntl(file.number(), F_ADD_SEALS, seals), 0);
  }
  return file;
}

TEST(SharedMemory, RefusesWhatCouldShrinkUnderIt) {
  std::string reason;
  for (const int seals :
       {0, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SHRINK | F_SEAL_GROW, F_SEAL_GROW | F_SEAL_SEAL}) {
    EXPECT_FALSE(SharedMemory::map(unsealed(seals), kThreePages, reason)) << seals;
    EXPECT_NE(reason.find("sealed"), std::string::npos);
  }
  const int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  EXPECT_TRUE(SharedMemory::map(unsealed(all), kThreePages, reason));
}

TEST(SharedMemory, RefusesAnotherSizeAndReadOnlyMemory) {
  std::string reason;
  const int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  EXPECT_FALSE(SharedMemory::map(unsealed(all), kThreePages - 4096, reason));
  EXPECT_FALSE(SharedMemory::map(unsealed(all), kThreePages + 4096, reason));
  EXPECT_NE(reason.find("12288 bytes instead of 16384"), std::string::npos) << reason;
  EXPECT_FALSE(SharedMemory::map(unsealed(all | F_SEAL_WRITE), kThreePages, reason));
}

TEST(SharedMemory, RefusesWhatIsNoMemory) {
  std::string reason;
  const Descriptor file(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_FALSE(SharedMemory::map(file, kThreePages, reason));
  EXPECT_FALSE(SharedMemory::map(Descriptor(), kThreePages, reason));
}

}  // namespace
}  // namespace cluster::os
