// The keeper holds descriptors without a place among those of any process, and gives exactly the right ones back.
#include "os/ring_keeper.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <vector>

namespace cluster::os {
namespace {

using Serials = std::vector<std::uint64_t>;

class RingKeeping : public ::testing::Test {
 protected:
  void SetUp() override {
    int error = 0;
    keeper_ = RingKeeper::open(error);
    ASSERT_TRUE(keeper_) << error_text(error);
  }
  /// Keeps the write end of a pipe, whose read end tells whether any copy is open.
  void keep(std::uint64_t serial) {
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC), 0);
    if (readers_.size() <= serial) readers_.resize(serial + 1);
    readers_[serial] = Descriptor(ends[0]);
    const Descriptor writer(ends[1]);
    EXPECT_EQ(keeper_.keep(serial, writer), 0);
  }
  bool open(std::uint64_t serial) const {
    char byte;
    return read(readers_[serial].number(), &byte, 1) != 0;  // zero: no writer is left
  }
  /// True if the descriptor is that of the serial.
  bool is(const Descriptor& descriptor, std::uint64_t serial) const {
    struct stat one {};
    struct stat other {};
    return descriptor && fstat(descriptor.number(), &one) == 0 &&
           fstat(readers_[serial].number(), &other) == 0 && one.st_ino == other.st_ino;
  }

  RingKeeper keeper_;
  std::vector<Descriptor> readers_;
};

TEST_F(RingKeeping, WhatIsKeptOutlivesItsOwner) {
  for (std::uint64_t i = 1; i <= 5; ++i) keep(i);
  for (std::uint64_t i = 1; i <= 5; ++i) EXPECT_TRUE(open(i));
  EXPECT_TRUE(is(keeper_.copy_of(4), 4));
  EXPECT_TRUE(is(keeper_.copy_of(1), 1));
  EXPECT_FALSE(keeper_.copy_of(6));
  for (std::uint64_t i = 1; i <= 5; ++i) EXPECT_TRUE(open(i)) << "a copy was taken, not the original";
}

TEST_F(RingKeeping, OnlyWhatIsWithdrawnIsClosed) {
  for (std::uint64_t i = 1; i <= 5; ++i) keep(i);
  const Serials gone{2, 5, 77};
  EXPECT_EQ(keeper_.withdraw(gone).size(), 2u);
  for (const std::uint64_t serial : {1u, 3u, 4u}) {
    EXPECT_TRUE(open(serial));
    EXPECT_TRUE(is(keeper_.copy_of(serial), serial));
  }
  for (const std::uint64_t serial : {2u, 5u}) {
    EXPECT_FALSE(open(serial));
    EXPECT_FALSE(keeper_.copy_of(serial));
  }
  EXPECT_EQ(keeper_.withdraw({}).size(), 0u);
}

TEST_F(RingKeeping, TwoCopiesAndAForgottenMarkDoNoHarm) {
  // What a process leaves that dies in withdraw().
  keep(1);
  keep(2);
  ASSERT_EQ(keeper_.keep(std::uint64_t{1} << 63 | 5, keeper_.copy_of(1)), 0);
  ASSERT_EQ(keeper_.keep(2, keeper_.copy_of(2)), 0);
  const Serials gone{2};
  EXPECT_EQ(keeper_.withdraw(gone).size(), 2u);
  EXPECT_FALSE(open(2));
  EXPECT_TRUE(is(keeper_.copy_of(1), 1));
}

TEST_F(RingKeeping, TheLastProcessTakesAllWithIt) {
  keep(1);
  keeper_ = RingKeeper();
  EXPECT_FALSE(open(1));
}

TEST_F(RingKeeping, NobodyElseCanPutAnythingIn) {
  sockaddr_un name{};
  socklen_t size = sizeof name;
  ASSERT_EQ(getsockname(keeper_.socket().number(), reinterpret_cast<sockaddr*>(&name), &size), 0);
  const Descriptor stranger(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(sendto(stranger.number(), "12345678", 8, MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&name), size),
            -1);
  EXPECT_EQ(errno, EPERM);
}

TEST_F(RingKeeping, ThereIsSpaceForAFullGroup) {
  const Descriptor any = Descriptor::spare();
  for (std::uint64_t i = 1; i <= 512; ++i) ASSERT_EQ(keeper_.keep(i, any), 0) << i;
  EXPECT_TRUE(keeper_.copy_of(512));
}

}  // namespace
}  // namespace cluster::os
