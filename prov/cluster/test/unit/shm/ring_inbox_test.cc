// Between two real processes: memory is accessible only if its process proves to own it, only where the
// kernel permits it, and only while that process lives.
#include "shm/ring_inbox.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "unit/shm/ring_memory.h"

namespace cluster::shm {
namespace {

std::string name_of_test() { return "peer-memory-test-" + std::to_string(::getpid()); }

/// From here on this process may not look into others, as in a container that is careful.
void forbid_foreign_memory() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

/// A child that connects and waits to be ended. What this process holds at some address it holds too.
class PeerMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    const os::LocalSocket listener = os::LocalSocket::listen(name_of_test(), reason);
    ASSERT_TRUE(listener) << reason;
    ASSERT_EQ(::pipe(gate_), 0);
    child_ = ::fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) {
      ::close(gate_[1]);
      for (std::byte& byte : bytes_) byte = std::byte{0xc3};
      char none;
      const os::LocalSocket connection = os::LocalSocket::connect(name_of_parent_, reason);
      if (connection) [[maybe_unused]]
        const ssize_t ended = ::read(gate_[0], &none, 1);
      ::_exit(bytes_[100] == std::byte{0x11} ? 7 : 0);
    }
    ::close(gate_[0]);
    while (!socket_ && reason.empty()) socket_ = listener.accept(reason);
    ASSERT_TRUE(socket_) << reason;
  }
  void TearDown() override { end(); }

  int end() {
    if (child_ <= 0) return -1;
    ::close(gate_[1]);
    int status = 0;
    ::waitpid(child_, &status, 0);
    child_ = 0;
    return WEXITSTATUS(status);
  }
  os::PeerProcess& process(os::PeerProcess::Watch watch = os::PeerProcess::Watch::handle) {
    return process_.emplace(socket_, watch);
  }
  Proof proof() const { return {reinterpret_cast<std::uintptr_t>(&secret_), secret_}; }
  std::uint64_t there(std::size_t index) const { return reinterpret_cast<std::uintptr_t>(&bytes_[index]); }

  std::string name_of_parent_ = name_of_test();
  std::uint64_t secret_ = 0x1234567890abcdef;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(10'000, std::byte{0x01});
  os::LocalSocket socket_;
  std::optional<os::PeerProcess> process_;
  RingMemory ring_;
  RingReader reader_{ring_.bytes(), ring_.geometry};
  int gate_[2] = {-1, -1};
  pid_t child_ = 0;
};

TEST_F(PeerMemoryTest, CopiesBothWays) {
  PeerMemory memory(process(), reader_, proof());
  if (!memory.reachable()) GTEST_SKIP() << "this kernel lets no process look into another";
  std::vector<std::byte> got(300);
  const Bytes slices[] = {{got.data(), 100}, {got.data() + 100, 200}};
  std::size_t rounds = 0;
  // The child fills its bytes after the fork: until then they are the parent's.
  while (got[299] != std::byte{0xc3} && ++rounds < 1'000'000) {
    ASSERT_TRUE(memory.read(there(9'700), slices, 0, 300));
  }
  EXPECT_EQ(got, std::vector<std::byte>(300, std::byte{0xc3}));
  const std::vector<std::byte> news(50, std::byte{0x11});
  const ConstBytes source[] = {{news.data(), news.size()}};
  ASSERT_TRUE(memory.write(there(80), {source, 0, 50}));
  EXPECT_EQ(end(), 7) << "the child must see what was written";
}

TEST_F(PeerMemoryTest, AWrongProofOpensNothing) {
  Proof wrong = proof();
  ++wrong.value;
  EXPECT_FALSE(PeerMemory(process(), reader_, wrong).reachable());
  EXPECT_FALSE(PeerMemory(process(), reader_, Proof{}).reachable());
  EXPECT_FALSE(PeerMemory(process(), reader_, Proof{8, secret_}).reachable())
      << "an address that is not mapped";
}

TEST_F(PeerMemoryTest, TheDeadHaveNoMemory) {
  PeerMemory memory(process(), reader_, proof());
  if (!memory.reachable()) GTEST_SKIP() << "this kernel lets no process look into another";
  end();
  std::byte byte;
  const Bytes target[] = {{&byte, 1}};
  EXPECT_FALSE(memory.read(there(0), target, 0, 1));
  const ConstBytes source[] = {{&byte, 1}};
  EXPECT_FALSE(memory.write(there(0), {source, 0, 1}));
}

/// Its process lives on, and may have overwritten what it had announced.
TEST_F(PeerMemoryTest, AProcessThatHasClosedItsRingHasNoMessagesLeft) {
  PeerMemory memory(process(), reader_, proof());
  if (!memory.reachable()) GTEST_SKIP() << "this kernel lets no process look into another";
  std::byte byte;
  const Bytes target[] = {{&byte, 1}};
  EXPECT_TRUE(memory.read(there(0), target, 0, 1));
  ring_.control().writer_state = EndState::kClosed;
  EXPECT_FALSE(memory.read(there(0), target, 0, 1));
}

/// A later process that has the number does not show the secret.
TEST_F(PeerMemoryTest, WithoutAHandleTheSecretIsLookedAtEachTime) {
  PeerMemory memory(process(os::PeerProcess::Watch::number), reader_, proof());
  if (!memory.reachable()) GTEST_SKIP() << "this kernel lets no process look into another";
  std::uint64_t other = 1;
  const ConstBytes source[] = {as_bytes(&other, sizeof other)};
  std::byte byte;
  const Bytes target[] = {{&byte, 1}};
  EXPECT_TRUE(memory.read(there(0), target, 0, 1));
  EXPECT_TRUE(memory.write(reinterpret_cast<std::uintptr_t>(&secret_), {source, 0, sizeof other}));
  EXPECT_FALSE(memory.write(there(0), {source, 0, 1}));
  EXPECT_FALSE(memory.read(there(0), target, 0, 1));
}

TEST_F(PeerMemoryTest, WhereTheKernelForbidsItNothingIsInReach) {
  const pid_t careful = ::fork();
  ASSERT_GE(careful, 0);
  if (careful == 0) {
    forbid_foreign_memory();
    ::_exit(PeerMemory(process(), reader_, proof()).reachable() ? 1 : 0);
  }
  int status = -1;
  ::waitpid(careful, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace cluster::shm
