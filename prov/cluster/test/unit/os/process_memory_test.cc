// A guarded copy reaches only the process that has the page, never another process with the same id.
#include "os/process_memory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "support/fake_environment.h"

namespace cluster::os {
namespace {

class GuardedCopyTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(page);
    if (write(::getpid()) != GuardedCopy::whole)
      GTEST_SKIP() << "this kernel lets no process look into another";
    here = 'a';
  }
  GuardedCopy write(int process) {
    const char news = 'b';
    const ConstBytes source = as_bytes(&news, 1);
    return write_guarded(process, page.mark(), reinterpret_cast<std::uintptr_t>(&here), {{&source, 1}, 0, 1});
  }
  GuardedCopy read(int process, const GuardMark& mark) {
    const Bytes target = as_bytes(&got, 1);
    return read_guarded(process, mark, reinterpret_cast<std::uintptr_t>(&here), {&target, 1}, 0, 1);
  }

  test::FakeRandom random{static_cast<std::uint64_t>(::getpid())};
  GuardPage page = GuardPage::open(random);
  char here = 'a';
  char got = 0;
};

TEST_F(GuardedCopyTest, ReachesTheProcessThatHasThePage) {
  EXPECT_EQ(read(::getpid(), page.mark()), GuardedCopy::whole);
  EXPECT_EQ(got, 'a');
  EXPECT_EQ(write(::getpid()), GuardedCopy::whole);
  EXPECT_EQ(here, 'b');
}

/// A child of fork() is as like its parent as a process can be, and its number is another one.
TEST_F(GuardedCopyTest, LeavesAnotherProcessOfThatNumberAlone) {
  int gate[2];
  ASSERT_EQ(::pipe(gate), 0);
  const pid_t other = ::fork();
  ASSERT_GE(other, 0);
  if (other == 0) {
    char none;
    ::close(gate[1]);
    [[maybe_unused]] const ssize_t ended = ::read(gate[0], &none, 1);
    ::_exit(here);
  }
  EXPECT_EQ(write(other), GuardedCopy::no_process);
  EXPECT_EQ(read(other, page.mark()), GuardedCopy::no_process);
  ::close(gate[0]);
  ::close(gate[1]);
  int status = 0;
  ::waitpid(other, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 'a');
  EXPECT_EQ(write(other), GuardedCopy::no_process) << "it has ended";
}

TEST_F(GuardedCopyTest, AnotherSecretIsAnotherProcess) {
  GuardMark wrong = page.mark();
  ++wrong.value;
  EXPECT_EQ(read(::getpid(), wrong), GuardedCopy::no_process);
}

TEST_F(GuardedCopyTest, MemoryThatIsNotThereCutsItShort) {
  const Bytes target = as_bytes(&got, 1);
  EXPECT_EQ(read_guarded(::getpid(), page.mark(), 8, {&target, 1}, 0, 1), GuardedCopy::cut_short);
}

}  // namespace
}  // namespace cluster::os
