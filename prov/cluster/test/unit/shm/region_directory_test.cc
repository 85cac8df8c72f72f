// Between two real processes: regions are written and read while their owner sleeps, a close leaves no access
// behind, and nothing is reached that is not offered.
#include "shm/region_directory.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "shm/peer_regions.h"
#include "unit/shm/region_domain.h"

namespace cluster::shm {
namespace {

using carrier::OfferedRegion;
using carrier::Outcome;

constexpr std::size_t kSize = 10 << 20;

/// The owner of the regions is a child that does what it is sent, a letter at a time, and sleeps in between.
/// What this process holds at some address it holds, too.
class RegionDirectoryTest : public testing::Test {
 protected:
  explicit RegionDirectoryTest(int flags = MAP_PRIVATE)
      : memory_(
            as_bytes(::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0), kSize)) {
    std::fill(memory_.begin(), memory_.end(), std::byte{1});
  }
  ~RegionDirectoryTest() override { ::munmap(memory_.data(), kSize); }
  enum Order : char {
    close_region = 'c',
    offer_again = 'o',
    close_endpoint = 'e',
    count_reads = 'r',
    show = 's'
  };

  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer allows no threads in a forked child";
#endif
#ifdef __clang__
#if __has_feature(address_sanitizer)
    GTEST_SKIP()
        << "clang's AddressSanitizer forks with its allocator locked, and a thread of the child waits for it";
#endif
#endif
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, line_), 0);
    owner_ = ::fork();
    ASSERT_GE(owner_, 0);
    if (owner_ == 0) {
      ::close(line_[0]);
      own_regions();
    }
    ::close(line_[1]);
    char ready = 0;
    ASSERT_EQ(::read(line_[0], &ready, 1), 1);
    regions_ = connector_.connect(name_);
    ASSERT_NE(regions_, nullptr);
    if (write(0, 0) != Outcome::done) GTEST_SKIP() << "this kernel lets no process look into another";
  }
  void TearDown() override { end_owner(); }

  void end_owner() {
    if (owner_ <= 0) return;
    ::kill(owner_, SIGKILL);
    ::waitpid(owner_, nullptr, 0);
    owner_ = 0;
  }
  OfferedRegion region(std::size_t skip = 0) const {
    return {.base = reinterpret_cast<std::uintptr_t>(memory_.data()) + skip,
            .start = 1000,
            .length = kSize - skip,
            .readable = true,
            .writable = true};
  }
  [[noreturn]] void own_regions() {
    RegionDomain domain;
    domain.directory.offer(kKey, region());
    OfferedRegion other = region();
    other.writable = false;
    domain.directory.offer(kKey + 1, other);
    std::shared_ptr<void> served = domain.directory.serve(name_, false, false);
    char order = 1;
    for (; ::write(line_[1], &order, 1) == 1 && ::read(line_[1], &order, 1) == 1;) {
      switch (order) {
        case close_region: order = domain.directory.withdraw(kKey) ? 1 : 0; break;
        case offer_again: domain.directory.offer(kKey, region(4096)); break;
        case close_endpoint: served.reset(); break;
        case count_reads:
          other = region();
          other.reads_served = true;
          domain.directory.change(kKey, other);
          break;
        case show: order = static_cast<char>(memory_[5000]); break;
      }
    }
    ::_exit(0);
  }
  char ask(Order order) {
    const char letter = order;
    char answer = 0;
    EXPECT_EQ(::write(line_[0], &letter, 1), 1);
    EXPECT_EQ(::read(line_[0], &answer, 1), 1);
    return answer;
  }
  Outcome write(std::uint64_t offset, std::size_t size, std::byte value = {}, std::uint64_t key = kKey) {
    const std::vector<std::byte> bytes(size, value);
    const ConstBytes slices[] = {bytes};
    return regions_->write(key, 1000 + offset, {slices, 0, size});
  }
  Outcome read(std::uint64_t offset, std::vector<std::byte>& bytes, std::uint64_t key = kKey) {
    const Bytes slices[] = {{bytes.data(), bytes.size() / 2},
                            {bytes.data() + bytes.size() / 2, bytes.size() - bytes.size() / 2}};
    return regions_->read(key, 1000 + offset, slices, 0, bytes.size());
  }

  const SocketAddress name_ = fresh_owner_name();
  const Bytes memory_;
  test::FakeLog log_;
  test::FakeRandom random_{1};
  PeerRegionConnector connector_{random_, log_, {}, 10s};
  std::unique_ptr<LocalMemory> regions_;
  int line_[2] = {-1, -1};
  pid_t owner_ = 0;
};

TEST_F(RegionDirectoryTest, ASleepingOwnerIsWrittenAndRead) {
  for (const std::size_t size : {1u, 8u, 5000u, 9u << 20}) {
    ASSERT_EQ(write(4999, size, std::byte{7}), Outcome::done);
    std::vector<std::byte> back(size);
    ASSERT_EQ(read(4999, back), Outcome::done);
    EXPECT_EQ(std::count(back.begin(), back.end(), std::byte{7}), std::ptrdiff_t(size));
  }
  EXPECT_EQ(ask(show), 7);
  EXPECT_EQ(memory_[5000], std::byte{1}) << "the memory of this process is another one";
}

std::size_t sockets_of(pid_t process) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/fd")) {
    std::error_code gone;
    count += std::filesystem::read_symlink(entry.path(), gone).string().starts_with("socket:") ? 1 : 0;
  }
  return count;
}

TEST_F(RegionDirectoryTest, NeitherSideKeepsAConnection) {
  const std::size_t own = sockets_of(::getpid()), owners = sockets_of(owner_);
  std::vector<std::unique_ptr<LocalMemory>> further;
  for (int i = 0; i < 5; ++i) {
    further.push_back(connector_.connect(name_));
    ASSERT_NE(further.back(), nullptr);
    std::array<std::byte, 1> byte{};
    const Bytes slice(byte);
    ASSERT_EQ(further.back()->read(kKey, 1000, {&slice, 1}, 0, 1), Outcome::done);
  }
  EXPECT_EQ(sockets_of(::getpid()), own);
  EXPECT_LE(sockets_of(owner_), owners + 1) << "the last one may be about to be closed";
}

TEST_F(RegionDirectoryTest, OnlyWhatIsOfferedIsReached) {
  std::vector<std::byte> back(100);
  EXPECT_EQ(write(kSize - 99, 100), Outcome::denied);
  EXPECT_EQ(write(~std::uint64_t{0} - 1010, 8), Outcome::denied);
  EXPECT_EQ(read(kSize, back), Outcome::denied);
  EXPECT_EQ(write(0, 8, {}, kKey + 2), Outcome::denied);
  EXPECT_EQ(write(0, 8, {}, kKey + 1), Outcome::denied) << "to be read only";
  EXPECT_EQ(read(0, back, kKey + 1), Outcome::done);
}

TEST_F(RegionDirectoryTest, WhatTheOwnerCountsItServes) {
  ask(count_reads);
  std::vector<std::byte> back(8);
  EXPECT_EQ(read(0, back), Outcome::unsuited);
  EXPECT_EQ(write(0, 8), Outcome::done);
}

TEST_F(RegionDirectoryTest, AClosedRegionIsGoneAndItsKeyFree) {
  EXPECT_EQ(ask(close_region), 1);
  EXPECT_EQ(write(5000, 1, std::byte{7}), Outcome::denied);
  EXPECT_EQ(ask(show), 1);
  ask(offer_again);
  EXPECT_EQ(write(5000 - 4096, 1, std::byte{8}), Outcome::done) << "it begins elsewhere now";
  EXPECT_EQ(ask(show), 8);
}

TEST_F(RegionDirectoryTest, AClosedEndpointOffersNothing) {
  ask(close_endpoint);
  EXPECT_EQ(write(5000, 1, std::byte{7}), Outcome::unsuited);
  EXPECT_EQ(ask(show), 1);
  EXPECT_EQ(connector_.connect(name_), nullptr);
}

TEST_F(RegionDirectoryTest, TheDeadHaveNoRegions) {
  end_owner();
  EXPECT_EQ(write(0, 8), Outcome::unsuited);
  EXPECT_EQ(write(0, 8), Outcome::unsuited);
  ASSERT_EQ(log_.lines.size(), 1u) << "once";
  EXPECT_NE(log_.lines[0].find("the peer's process has ended"), std::string::npos);
}

/// The region lies in memory that its owner shares: with this process, as it happens, which looks at it
/// there.
class MappedRegionTest : public RegionDirectoryTest {
 protected:
  MappedRegionTest() : RegionDirectoryTest(MAP_SHARED) {}
  void SetUp() override {
    RegionDirectoryTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    use_often();
    std::byte first[1];
    if (regions_->load(kKey, 1000, first) != Outcome::done)
      GTEST_SKIP() << "not privileged to open what has no name";
  }
  void use_often() {
    for (std::uint32_t i = 0; i < MappedRegions::kUsesBefore; ++i) ASSERT_EQ(write(0, 1), Outcome::done);
  }
  Outcome store(std::uint64_t offset, std::size_t size, std::byte value, std::uint64_t key = kKey) {
    const std::vector<std::byte> bytes(size, value);
    return regions_->store(key, 1000 + offset, bytes);
  }
  bool store_through_window(std::uint64_t offset, std::size_t size, std::byte value,
                            std::uint64_t key = kKey) {
    return regions_->window().access(key, 1000 + offset, size, RegionEntry::kWritable,
                                     RegionEntry::kWritesServed,
                                     [&](std::byte* there) { std::fill_n(there, size, value); });
  }
};

TEST_F(MappedRegionTest, IsStoredToAndLoadedFrom) {
  for (const std::size_t size : {1u, 8u, 5000u, 3u << 20}) {
    ASSERT_EQ(store(4999, size, std::byte{7}), Outcome::done);
    EXPECT_EQ(std::count(memory_.begin() + 4999, memory_.begin() + 4999 + std::ptrdiff_t(size), std::byte{7}),
              std::ptrdiff_t(size));
    std::vector<std::byte> back(size);
    ASSERT_EQ(regions_->load(kKey, 5999, back), Outcome::done);
    EXPECT_EQ(std::count(back.begin(), back.end(), std::byte{7}), std::ptrdiff_t(size));
  }
  std::vector<std::byte> back(9 << 20);
  ASSERT_EQ(write(1, back.size(), std::byte{9}), Outcome::done);
  ASSERT_EQ(read(1, back), Outcome::done);
  EXPECT_EQ(std::count(back.begin(), back.end(), std::byte{9}), std::ptrdiff_t(back.size()));
}

TEST_F(MappedRegionTest, IsBoundToTheSameRules) {
  EXPECT_EQ(store(kSize - 7, 8, std::byte{7}), Outcome::unsuited) << "beyond the end";
  EXPECT_EQ(write(kSize - 1, 8), Outcome::denied);
  EXPECT_EQ(store(0, 8, std::byte{7}, kKey + 1), Outcome::unsuited) << "to be read only";
  ask(count_reads);
  std::vector<std::byte> back(8);
  EXPECT_EQ(regions_->load(kKey, 1000, back), Outcome::unsuited) << "its owner counts them";
  EXPECT_EQ(store(0, 8, std::byte{7}), Outcome::done);
  ask(close_endpoint);
  EXPECT_EQ(store(8, 8, std::byte{7}), Outcome::unsuited);
  EXPECT_EQ(memory_[8], std::byte{1});
}

TEST_F(MappedRegionTest, TheWindowShowsIt) {
  EXPECT_TRUE(store_through_window(4999, 8, std::byte{7}));
  EXPECT_EQ(memory_[4999], std::byte{7});
  EXPECT_EQ(memory_[5006], std::byte{7});
  EXPECT_FALSE(store_through_window(0, 8, std::byte{7}, kKey + 1)) << "another key";
  EXPECT_EQ(store(kSize - 8, 8, std::byte{1}), Outcome::done);  // another part, which the window shows now
  EXPECT_TRUE(store_through_window(kSize - 8, 8, std::byte{9}));
  EXPECT_EQ(memory_[kSize - 1], std::byte{9});
  EXPECT_FALSE(store_through_window(kSize - 7, 8, std::byte{7})) << "beyond the end";
  EXPECT_FALSE(store_through_window(0, 8, std::byte{7})) << "this part of the memory may lack pages";
  EXPECT_EQ(store(0, kSize / 4, std::byte{1}), Outcome::done);
  EXPECT_EQ(store(kSize / 4, kSize / 4, std::byte{1}), Outcome::done);
  EXPECT_EQ(store(kSize / 2, kSize / 2 - 1, std::byte{1}), Outcome::unsuited) << "too long for one use";
  EXPECT_EQ(store(kSize / 2, kSize / 4, std::byte{1}), Outcome::done);
  EXPECT_EQ(store(kSize / 4 * 3, kSize / 4, std::byte{1}), Outcome::done);
  EXPECT_TRUE(store_through_window(0, 8, std::byte{7})) << "all pages are there";
  EXPECT_TRUE(store_through_window(kSize - 8, 8, std::byte{7}));
}

TEST_F(MappedRegionTest, TheWindowIsClosedWithIt) {
  EXPECT_EQ(store(0, 8, std::byte{7}), Outcome::done);
  EXPECT_TRUE(store_through_window(8, 8, std::byte{7}));
  EXPECT_EQ(ask(close_region), 1);
  EXPECT_FALSE(store_through_window(16, 8, std::byte{7}));
  ask(offer_again);
  EXPECT_FALSE(store_through_window(16, 8, std::byte{7})) << "it begins elsewhere now";
  EXPECT_EQ(memory_[16], std::byte{1});
  use_often();
  EXPECT_EQ(store(0, 8, std::byte{8}), Outcome::done);
  EXPECT_TRUE(store_through_window(16, 8, std::byte{8}));
  EXPECT_EQ(memory_[4096 + 16], std::byte{8});
  ask(close_endpoint);
  EXPECT_FALSE(store_through_window(24, 8, std::byte{9}));
  EXPECT_EQ(memory_[4096 + 24], std::byte{1});
}

TEST_F(MappedRegionTest, IsAnotherOneWhenItsKeyIsRegisteredAgain) {
  EXPECT_EQ(ask(close_region), 1);
  EXPECT_EQ(store(5000, 1, std::byte{7}), Outcome::unsuited);
  EXPECT_EQ(write(5000, 1, std::byte{7}), Outcome::denied);
  EXPECT_EQ(memory_[5000], std::byte{1});
  ask(offer_again);
  EXPECT_EQ(store(100, 1, std::byte{8}), Outcome::unsuited) << "not yet";
  EXPECT_EQ(write(100, 1, std::byte{8}), Outcome::done);
  EXPECT_EQ(memory_[4196], std::byte{8}) << "it begins elsewhere now";
  use_often();
  EXPECT_EQ(store(101, 1, std::byte{9}), Outcome::done);
  EXPECT_EQ(memory_[4197], std::byte{9});
}

TEST_F(RegionDirectoryTest, WhereTheKernelForbidsItTheOwnersLibraryServes) {
  const pid_t careful = ::fork();
  ASSERT_GE(careful, 0);
  if (careful == 0) {
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
    regions_ = connector_.connect(name_);
    const bool served =
        regions_ != nullptr && write(0, 8) == Outcome::unsuited && write(0, 8) == Outcome::unsuited;
    ::_exit(served && log_.lines.size() == 1 ? 0 : 1);
  }
  int status = -1;
  ::waitpid(careful, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(RegionTableInMemory, WhatFindsNoEntryIsServedAndNotDenied) {
  RegionDomain domain;
  const SocketAddress name = fresh_owner_name();
  const std::shared_ptr<void> served = domain.directory.serve(name, false, false);
  constexpr std::uint64_t kCrowded = 40;  // whose entries lie side by side
  const auto key = [](std::uint64_t i) { return i << 26; };
  std::uint64_t word = 5;
  for (std::uint64_t i = 0; i < kCrowded; ++i) {
    domain.directory.offer(key(i),
                           {.base = reinterpret_cast<std::uintptr_t>(&word), .length = 8, .readable = true});
  }
  test::FakeLog log;
  const auto regions = PeerRegionConnector(domain.random, log, {}, 10s).connect(name);
  ASSERT_NE(regions, nullptr);
  std::uint64_t seen = 0;
  const Bytes slices[] = {as_bytes(&seen, sizeof seen)};
  const auto read = [&](std::uint64_t k) { return regions->read(k, 0, slices, 0, sizeof seen); };
  if (read(key(0)) != Outcome::done) GTEST_SKIP() << "this kernel lets no process look into another";
  EXPECT_EQ(seen, 5u);
  EXPECT_EQ(read(key(kCrowded - 1)), Outcome::unsuited);
  EXPECT_EQ(read(key(kCrowded)), Outcome::unsuited) << "it may be one of those";
  for (std::uint64_t i = 32; i < kCrowded; ++i) EXPECT_TRUE(domain.directory.withdraw(key(i)));
  EXPECT_EQ(read(key(kCrowded)), Outcome::denied);
  EXPECT_EQ(read(key(31)), Outcome::done);
}

}  // namespace
}  // namespace cluster::shm
