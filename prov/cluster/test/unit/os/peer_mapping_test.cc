// Which memory of a process can be mapped once more, and that it is the same memory.
#include "os/peer_mapping.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/fake_environment.h"

namespace cluster::os {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kSize = 64 * kPage;

/// Memory of this process.
class TestMap {
 public:
  TestMap(int flags, int file = -1, std::size_t skip = 0)
      : data_(static_cast<char*>(
            ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, flags, file, static_cast<off_t>(skip)))) {}
  ~TestMap() { ::munmap(data_, kSize); }
  TestMap(const TestMap&) = delete;
  TestMap& operator=(const TestMap&) = delete;
  char* at(std::size_t offset) const { return data_ + offset; }

 private:
  char* data_;
};

int file_in_memory(std::size_t size) {
  const int file = ::memfd_create("peer_mapping_test", MFD_CLOEXEC);
  EXPECT_EQ(::ftruncate(file, static_cast<off_t>(size)), 0);
  return file;
}

class PeerMappingTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(page);
    const int file = file_in_memory(kSize);
    const TestMap memory(MAP_SHARED, file);
    const bool possible = static_cast<bool>(open(memory, 0, kSize));
    ::close(file);
    if (!possible) GTEST_SKIP() << "this kernel does not populate mappings, or hides /proc";
  }
  PeerMapping open(const TestMap& memory, std::size_t offset, std::size_t length) const {
    return PeerMapping::open(::getpid(), page.mark(), reinterpret_cast<std::uintptr_t>(memory.at(offset)),
                             length);
  }
  /// The mapping is another one of the same bytes.
  static void expect_same(PeerMapping& mapping, const TestMap& memory, std::size_t offset,
                          std::size_t length) {
    for (const std::size_t at : {std::size_t{0}, length / 2, length - 1}) {
      *mapping.at(at, 1) = std::byte{7};
      EXPECT_EQ(*memory.at(offset + at), 7);
      *memory.at(offset + at) = 8;
      EXPECT_EQ(*mapping.at(at, 1), std::byte{8});
    }
    EXPECT_NE(static_cast<void*>(mapping.at(0, 1)), static_cast<void*>(memory.at(offset)));
  }

  test::FakeRandom random{static_cast<std::uint64_t>(::getpid())};
  GuardPage page = GuardPage::open(random);
};

/// The length and the offset may come from a peer that lies.
TEST_F(PeerMappingTest, NothingOutsideOfTheRange) {
  const int file = file_in_memory(kSize);
  const TestMap memory(MAP_SHARED, file);
  PeerMapping mapping = open(memory, kPage, 40 * kPage);
  ASSERT_TRUE(mapping);
  for (const std::uint64_t offset : {std::uint64_t{40 * kPage}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    EXPECT_EQ(mapping.at(offset, 1), nullptr);
    EXPECT_EQ(mapping.ready_at(offset, 1), nullptr);
  }
  EXPECT_EQ(mapping.at(1, 40 * kPage), nullptr);
  EXPECT_EQ(mapping.at(0, ~std::size_t{0}), nullptr);
  EXPECT_EQ(mapping.ready_at(0, 1), nullptr) << "most of it is not populated";
  ASSERT_NE(mapping.at(0, 40 * kPage), nullptr);
  EXPECT_EQ(mapping.ready_at(40 * kPage - 8, 8), mapping.at(40 * kPage - 8, 8));
  EXPECT_EQ(mapping.ready_at(40 * kPage - 7, 8), nullptr);
  ::close(file);
}

TEST_F(PeerMappingTest, AFileInMemoryIsMappedAnywhereInIt) {
  const int file = file_in_memory(3 * kSize);
  const TestMap memory(MAP_SHARED, file, kSize);
  for (const std::size_t offset : {std::size_t{0}, std::size_t{5}, kSize / 2 + 100}) {
    PeerMapping mapping = open(memory, offset, kSize - offset);
    ASSERT_TRUE(mapping);
    expect_same(mapping, memory, offset, kSize - offset);
  }
  // One that its owner has split into maps of different advice is one piece of the file all the same.
  ASSERT_EQ(::madvise(memory.at(kSize / 2), kPage, MADV_DONTDUMP), 0);
  PeerMapping mapping = open(memory, 0, kSize);
  ASSERT_TRUE(mapping);
  expect_same(mapping, memory, 0, kSize);
  ::close(file);
}

TEST_F(PeerMappingTest, PosixSharedMemoryIsFoundByItsName) {
  const std::string name = "/cluster-peer-mapping-" + std::to_string(::getpid());
  const int file = ::shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  ASSERT_GE(file, 0);
  ASSERT_EQ(::ftruncate(file, kSize), 0);
  const TestMap memory(MAP_SHARED, file);
  ::close(file);
  PeerMapping mapping = open(memory, 0, kSize);
  ::shm_unlink(name.c_str());
  ASSERT_TRUE(mapping);
  expect_same(mapping, memory, 0, kSize);
}

TEST_F(PeerMappingTest, OtherMemoryIsNot) {
  EXPECT_FALSE(open(TestMap(MAP_PRIVATE | MAP_ANONYMOUS), 0, kSize));
  const int file = file_in_memory(kSize);
  EXPECT_FALSE(open(TestMap(MAP_PRIVATE, file), 0, kSize)) << "what is written there no other process sees";
  const TestMap memory(MAP_SHARED, file);
  EXPECT_FALSE(open(memory, kPage, kSize)) << "not all of it is there";
  ASSERT_EQ(::mprotect(memory.at(kPage), kPage, PROT_READ), 0);
  EXPECT_FALSE(open(memory, 0, kSize)) << "its owner may not write it";
  ASSERT_EQ(::mprotect(memory.at(kPage), kPage, PROT_READ | PROT_WRITE), 0);
  EXPECT_TRUE(open(memory, 0, kSize));
  ASSERT_EQ(::ftruncate(file, kSize / 2), 0);
  EXPECT_FALSE(open(memory, 0, kSize)) << "the file has been cut short";
  ::close(file);
}

TEST_F(PeerMappingTest, FilesOnDisksAreNot) {
  std::string path = (std::filesystem::current_path() / "peer-mapping-XXXXXX").string();
  const int file = ::mkstemp(path.data());
  ASSERT_GE(file, 0);
  ::unlink(path.c_str());
  ASSERT_EQ(::ftruncate(file, kSize), 0);
  const TestMap memory(MAP_SHARED, file);
  PeerMapping mapping = open(memory, 0, kSize);
  ::close(file);
  if (mapping) GTEST_SKIP() << "the current directory lies in memory";
}

TEST_F(PeerMappingTest, OnlyTheProcessWithTheGuardPageIs) {
  const int file = file_in_memory(kSize);
  const TestMap memory(MAP_SHARED, file);
  GuardMark other = page.mark();
  other.value ^= 2;
  EXPECT_FALSE(PeerMapping::open(::getpid(), other, reinterpret_cast<std::uintptr_t>(memory.at(0)), kSize));
  EXPECT_FALSE(
      PeerMapping::open(::getppid(), page.mark(), reinterpret_cast<std::uintptr_t>(memory.at(0)), kSize));
  ::close(file);
}

TEST_F(PeerMappingTest, MemoryThatIsNotThereFailsInsteadOfKilling) {
  const int file = file_in_memory(kSize);
  const TestMap memory(MAP_SHARED, file);
  PeerMapping mapping = open(memory, 0, kSize);
  ASSERT_TRUE(mapping);
  ASSERT_EQ(::ftruncate(file, kSize / 2), 0);
  EXPECT_EQ(mapping.at(kSize - 8, 8), nullptr) << "not populated before the file was cut short";
  ::close(file);
}

}  // namespace
}  // namespace cluster::os
