#include "os/helper_thread.h"

#include <gtest/gtest.h>

#include <csignal>

#include "support/failing_memory.h"

namespace cluster::os {
namespace {

bool blocks(int signal) {
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  return sigismember(&blocked, signal) == 1;
}

TEST(HelperThread, TheCallersSignalsPassWhateverItsWorkDoes) {
  ASSERT_FALSE(blocks(SIGUSR1));
  struct Failure {};
  const std::function<void()> fails = [] { throw Failure(); };
  const auto run = [&fails] {
    const test::FailingMemory none(0);
    const HelperThread helper(fails);
  };
  EXPECT_THROW(run(), Failure);
  EXPECT_FALSE(blocks(SIGUSR1));
}

}  // namespace
}  // namespace cluster::os
