// Rings are counted by names: as many claims as rings succeed, and those of dead processes are free at once.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "os/packet_ring.h"

namespace cluster::os {
namespace {

using Family = SocketAddress::Family;

/// An interface of this test's own, though names are the whole namespace's: processes have different ones.
int some_interface() { return 1'000'000 + getpid(); }

std::optional<Descriptor> claim(std::size_t rings, int index = some_interface(), Family family = Family::v4) {
  return claim_ring(index, family, rings);
}

TEST(RingClaim, AsManyAsThereAre) {
  std::vector<std::optional<Descriptor>> claims;
  for (int i = 0; i < 3; ++i) {
    claims.push_back(claim(3));
    ASSERT_TRUE(claims.back());
    EXPECT_TRUE(*claims.back()) << "it is held by something";
  }
  EXPECT_FALSE(claim(3));
  EXPECT_FALSE(claim(1)) << "a claim with a lower limit finds those taken";
  EXPECT_TRUE(claim(4)) << "a claim with a higher limit finds one";
}

TEST(RingClaim, NoneIfThereShallBeNone) { EXPECT_FALSE(claim(0)); }

TEST(RingClaim, WhatIsGivenBackIsFree) {
  std::array<std::optional<Descriptor>, 2> claims{claim(2), claim(2)};
  EXPECT_FALSE(claim(2));
  claims[0].reset();
  claims[0] = claim(2);
  EXPECT_TRUE(claims[0]);
  EXPECT_FALSE(claim(2));
}

TEST(RingClaim, InterfacesAndFamiliesHaveTheirOwn) {
  const auto held = claim(1);
  ASSERT_TRUE(held);
  EXPECT_FALSE(claim(1));
  EXPECT_TRUE(claim(1, some_interface() + 1'000'000));
  EXPECT_TRUE(claim(1, some_interface(), Family::v6));
}

/// Each takes a ring if there is one and says so, and lives until it is killed, or its parent is dead.
class Processes {
 public:
  Processes(std::size_t count, std::size_t rings, int index) {
    std::array<int, 2> pipe{};
    if (::pipe(pipe.data()) != 0) return;
    for (std::size_t i = 0; i < count; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        const auto held = claim(rings, index);
        const char word = held ? 'y' : 'n';
        if (::write(pipe[1], &word, 1) == 1) pause();
        _exit(0);
      }
      if (child > 0) children_.push_back(child);
    }
    ::close(pipe[1]);  // otherwise reading would not end if one of them dies
    for (char word = 0; answers_ < children_.size() && ::read(pipe[0], &word, 1) == 1; ++answers_) {
      holders_ += word == 'y';
    }
    ::close(pipe[0]);
  }
  ~Processes() {
    for (const pid_t child : children_) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
  }
  std::size_t answers() const { return answers_; }
  std::size_t holders() const { return holders_; }

 private:
  std::vector<pid_t> children_;
  std::size_t answers_ = 0;
  std::size_t holders_ = 0;
};

TEST(RingClaim, OfManyThatStartAtOnceJustSoManyHaveOne) {
  const int index = some_interface();
  for (const std::size_t rings : {1u, 4u, 7u}) {
    const Processes crowd(32, rings, index);
    ASSERT_EQ(crowd.answers(), 32u);
    EXPECT_EQ(crowd.holders(), rings);
    EXPECT_FALSE(claim(rings, index));
  }
}

TEST(RingClaim, TheDeadHaveNone) {
  const int index = some_interface();
  {
    const Processes crowd(5, 4, index);
    ASSERT_EQ(crowd.answers(), 5u);
    EXPECT_FALSE(claim(4, index));
  }
  std::vector<std::optional<Descriptor>> claims;
  for (int i = 0; i < 4; ++i) {
    claims.push_back(claim(4, index));
    EXPECT_TRUE(claims.back());
  }
}

TEST(RingClaim, NamesAreOfOneNetworkNamespace) {
  const auto held = claim(1);
  ASSERT_TRUE(held);
  const int index = some_interface();
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWNET) != 0) _exit(77);
    _exit(claim(1, index) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "needs root to make a network namespace";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace cluster::os
