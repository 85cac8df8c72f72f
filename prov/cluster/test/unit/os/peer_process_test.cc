#include "os/peer_process.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <deque>

namespace cluster::os {
namespace {

using Watch = PeerProcess::Watch;

/// A child that connects and waits to be ended.
class PeerProcessTest : public testing::TestWithParam<Watch> {
 protected:
  void SetUp() override {
    const std::string name = "cluster-peer-process-test/" + std::to_string(::getpid());
    std::string reason;
    const LocalSocket listener = LocalSocket::listen(name, reason);
    ASSERT_TRUE(listener) << reason;
    child_ = ::fork();
    if (child_ == 0) {
      const LocalSocket connection = LocalSocket::connect(name, reason);
      for (;;) ::pause();
    }
    listener.wait_for_message(std::chrono::seconds(10));
    socket_ = listener.accept(reason);
    ASSERT_TRUE(socket_) << reason;
  }
  void TearDown() override { end(); }
  void end() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = 0;
  }

  LocalSocket socket_;
  pid_t child_ = 0;
};

TEST_P(PeerProcessTest, EndsWithTheProcessAndNotWithTheConnection) {
  const PeerProcess process(socket_, GetParam());
  EXPECT_EQ(process.number(), child_);
  EXPECT_FALSE(process.ended());
  const int before = process.descriptor();
  EXPECT_EQ(before >= 0, GetParam() == Watch::handle);
  socket_ = {};
  EXPECT_FALSE(process.ended());
  ::kill(child_, SIGKILL);
  ::siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOWAIT);
  EXPECT_TRUE(process.ended()) << "before it is waited for";
  end();
  EXPECT_TRUE(process.ended());
  if (before < 0) return;
  pollfd watch{before, POLLIN, 0};
  EXPECT_EQ(::poll(&watch, 1, 0), 1);
}

INSTANTIATE_TEST_SUITE_P(ByHandleAndNumber, PeerProcessTest, testing::Values(Watch::handle, Watch::number));

/// From here on this process may open no handle of another, as in an older container on an older kernel.
void forbid_handles() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getsockopt, 2, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 77, 0, 1),  // SO_PEERPIDFD
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOPROTOOPT),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) ::_exit(2);
}

TEST_F(PeerProcessTest, SaysWhereItsEndCannotBeSeen) {
  EXPECT_TRUE(PeerProcess(socket_).observable() && PeerProcess(socket_, Watch::number).observable());
  const pid_t confined = ::fork();
  if (confined == 0) {
    forbid_handles();
    const PeerProcess process(socket_);
    ::_exit(process.observable() || process.ended() || process.descriptor() >= 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(confined, &status, 0), confined);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(PeerProcessTest, ThereAreSoManyHandlesAndNotOneMore) {
  std::deque<PeerProcess> peers;
  for (int i = 0; i < PeerProcess::kHandlesMax + 3; ++i) {
    peers.emplace_back(socket_);
    EXPECT_EQ(peers.back().descriptor() >= 0, i < PeerProcess::kHandlesMax) << i;
  }
  EXPECT_FALSE(peers.back().ended());
  peers.pop_front();
  EXPECT_GE(PeerProcess(socket_).descriptor(), 0) << "one has been given back";
  end();
  EXPECT_TRUE(peers.front().ended() && peers.back().ended());
}

}  // namespace
}  // namespace cluster::os
