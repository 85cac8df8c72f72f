// For tests of sockets that a privileged process makes and passes to an unprivileged one: a process of
// another user, and a frame that no host would send.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <functional>

namespace cluster::test {

inline constexpr std::uint16_t kOtherEtherType = 0x88b6;  ///< for local experiments, and not the provider's
inline constexpr std::array<char, 64> kFrameOfNoHost{"\0\0\0\0\0\0\2\2\2\2\2\2\x88\xb6 a frame of no host"};

/// Makes the call in a forked child of another user without capabilities: 0 or an errno. Descriptors and shared memory are still there, as
/// if they had been passed to it.
inline int as_plain_user(const std::function<int()>& call) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresuid(65534, 65534, 65534) != 0) ::_exit(255);
    ::_exit(call() < 0 ? errno : 0);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace cluster::test
