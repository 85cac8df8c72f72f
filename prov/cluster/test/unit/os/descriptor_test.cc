// The text for a failed call, and the remedy for an exhausted resource.

#include "os/descriptor.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "os/interfaces.h"

namespace cluster::os {
namespace {

TEST(ErrorText, NamesTheCureOfWhatHasRunOut) {
  EXPECT_EQ(error_text(EADDRINUSE), "Address already in use");
  EXPECT_EQ(error_text(EMFILE), "Too many open files: raise the hard limit of open files (\"ulimit -Hn\")");
  EXPECT_NE(error_text(ENFILE).find(": raise the limit of open files of the node (sysctl fs.file-max)"),
            std::string::npos);
  errno = EMFILE;
  EXPECT_EQ(failed("socket"), "socket: " + error_text(EMFILE));
}

TEST(ErrorText, InterfacesAreNotMissingWhereDescriptorsAre) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_TRUE(can_open(4));
  const rlimit none{0, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  int error = 0;
  const bool empty = list_interfaces(&error).empty();
  const bool one_is_left = can_open(1);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_TRUE(empty);
  EXPECT_EQ(error, EMFILE);
  EXPECT_FALSE(one_is_left);
  EXPECT_FALSE(list_interfaces(&error).empty());
  EXPECT_EQ(error, 0);
}

/// Returns for how many descriptors the kernel's table of this process has space.
long table_size() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("FDSize:")) return std::stol(line.substr(7));
  }
  return 0;
}

// A child begins with a small table, whatever the tests before have opened.
TEST(DescriptorTable, HasSpaceBeforeThreadsNeedIt) {
  const pid_t child = fork();
  if (child == 0) {
    const bool small = table_size() < kDescriptorsReserved;
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    raise_descriptor_limit();
    reserve_descriptor_table();
    const bool large =
        table_size() >= std::min<long>(static_cast<long>(limit.rlim_max), kDescriptorsReserved);
    _exit(!small ? 1 : !large ? 2 : !can_open(1) ? 3 : 0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace cluster::os
