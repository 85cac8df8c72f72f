#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <set>

#include "base/process_generation.h"
#include "os/system_clock.h"
#include "os/system_random.h"

namespace cluster::os {
namespace {

TEST(SystemClock, NeverGoesBack) {
  SystemClock clock;
  Time last = clock.now();
  for (int i = 0; i < 1000; ++i) {
    const Time now = clock.now();
    ASSERT_GE(now, last);
    last = now;
  }
  EXPECT_GT(last, Time{});
}

TEST(SystemRandom, DoesNotRepeat) {
  SystemRandom random;
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(seen.insert(random.next()).second);
}

TEST(SystemRandom, ParentAndChildDrawDifferentNumbers) {
  SystemRandom random;
  random.next();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) ++process_generation;  // as the fork guard does (os/descriptor.h)
  std::uint64_t value = random.next();
  if (child == 0) _exit(write(ends[1], &value, sizeof value) == sizeof value ? 0 : 1);
  std::uint64_t other = value;
  ASSERT_EQ(read(ends[0], &other, sizeof other), static_cast<ssize_t>(sizeof other));
  EXPECT_NE(value, other);
  waitpid(child, nullptr, 0);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace cluster::os
