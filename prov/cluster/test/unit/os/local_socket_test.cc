#include "os/local_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>

namespace cluster::os {
namespace {

using Receipt = LocalSocket::Receipt;
using Message = std::array<std::byte, 16>;

std::string unique_name() {
  static int count = 0;
  return "cluster-test/" + std::to_string(::getpid()) + "/" + std::to_string(count++);
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

Descriptor something() { return Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

/// What another program can do with a socket: messages and descriptors of any number.
class OtherProgram {
 public:
  explicit OtherProgram(const std::string& name)
      : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy(name.begin(), name.end(), address.sun_path + 1);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    EXPECT_EQ(::connect(socket_.number(), reinterpret_cast<sockaddr*>(&address), size), 0);
  }
  void send(std::size_t size, std::size_t descriptors) {
    std::array<std::byte, 256> bytes{};
    iovec part{bytes.data(), size};
    alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    const Descriptor file = something();
    if (descriptors > 0) {
      header.msg_control = control;
      header.msg_controllen = CMSG_SPACE(descriptors * sizeof(int));
      cmsghdr* rights = CMSG_FIRSTHDR(&header);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(descriptors * sizeof(int));
      for (std::size_t i = 0; i < descriptors; ++i) {
        const int number = file.number();
        std::memcpy(CMSG_DATA(rights) + i * sizeof number, &number, sizeof number);
      }
    }
    ASSERT_EQ(::sendmsg(socket_.number(), &header, MSG_NOSIGNAL), static_cast<ssize_t>(size));
  }
  void hang_up() { socket_.reset(); }
  void stop_writing() { ::shutdown(socket_.number(), SHUT_WR); }

 private:
  Descriptor socket_;
};

class LocalSocketTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(listener) << reason; }

  std::string reason;
  std::string name = unique_name();
  LocalSocket listener = LocalSocket::listen(name, reason);
  Message message{};
  Descriptor attachment;
};

TEST_F(LocalSocketTest, CarriesAMessageAndADescriptor) {
  EXPECT_FALSE(listener.accept(reason));
  EXPECT_EQ(reason, "");
  const LocalSocket client = LocalSocket::connect(name, reason);
  ASSERT_TRUE(client) << reason;
  LocalSocket server = listener.accept(reason);
  ASSERT_TRUE(server) << reason;
  EXPECT_EQ(server.receive(message, &attachment), Receipt::nothing);

  Message sent{};
  sent.fill(std::byte{7});
  const Descriptor file = something();
  ASSERT_TRUE(client.send(sent, file, reason)) << reason;
  ASSERT_EQ(server.receive(message, &attachment), Receipt::message);
  EXPECT_EQ(message, sent);
  ASSERT_TRUE(attachment);
  EXPECT_NE(attachment.number(), file.number());
  EXPECT_NE(::fcntl(attachment.number(), F_GETFD) & FD_CLOEXEC, 0) << "must not leak into exec'd children";
  struct stat one, other;
  ASSERT_EQ(::fstat(file.number(), &one), 0);
  ASSERT_EQ(::fstat(attachment.number(), &other), 0);
  EXPECT_EQ(one.st_rdev, other.st_rdev);
  EXPECT_EQ(server.receive(message, &attachment), Receipt::nothing);
}

TEST_F(LocalSocketTest, BothSidesAreThisUser) {
  const LocalSocket client = LocalSocket::connect(name, reason);
  LocalSocket server = listener.accept(reason);
  EXPECT_TRUE(client.same_user());
  EXPECT_TRUE(server.same_user());
  EXPECT_EQ(server.peer_user(), ::geteuid());
}

TEST_F(LocalSocketTest, AnotherUserIsSeenFromBothSides) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresuid(65534, 65534, 65534) != 0) ::_exit(2);
    const LocalSocket client = LocalSocket::connect(name, reason);
    ::_exit(client && !client.same_user() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  LocalSocket server = listener.accept(reason);
  ASSERT_TRUE(server);
  EXPECT_FALSE(server.same_user());
}

/// All users that are not mapped have one number.
TEST_F(LocalSocketTest, AUserWithoutANumberIsNotTheSameAsAnother) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWUSER) != 0) ::_exit(77);
    if (::geteuid() != 65534) ::_exit(2);
    const LocalSocket client = LocalSocket::connect(name, reason);
    ::_exit(client && client.peer_user() == ::geteuid() && !client.same_user() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "needs a user namespace";
  EXPECT_EQ(status, 0);
}

TEST_F(LocalSocketTest, ANameBelongsToOneListenerAtATime) {
  EXPECT_FALSE(LocalSocket::listen(name, reason));
  EXPECT_NE(reason.find("in use"), std::string::npos) << reason;
  listener = LocalSocket();
  EXPECT_TRUE(LocalSocket::listen(name, reason)) << "nothing is left behind";
}

TEST_F(LocalSocketTest, SaysWhyThereIsNoConnection) {
  EXPECT_FALSE(LocalSocket::connect(unique_name(), reason));
  EXPECT_NE(reason.find("no process on this node offers"), std::string::npos) << reason;
}

TEST_F(LocalSocketTest, NamesArePrefixFree) {
  EXPECT_FALSE(LocalSocket::connect(name + "1", reason));
  EXPECT_FALSE(LocalSocket::connect(name.substr(0, name.size() - 1), reason));
}

TEST_F(LocalSocketTest, TheEndComesAfterWhatWasSent) {
  LocalSocket client = LocalSocket::connect(name, reason);
  LocalSocket server = listener.accept(reason);
  EXPECT_FALSE(server.hung_up());
  ASSERT_TRUE(client.send(message, something(), reason));
  client = LocalSocket();
  EXPECT_TRUE(server.hung_up());
  EXPECT_EQ(server.receive(message, &attachment), Receipt::message);
  EXPECT_EQ(server.receive(message, &attachment), Receipt::end);
}

TEST_F(LocalSocketTest, AClientLearnsThatTheListenerDiedBeforeAccepting) {
  const LocalSocket client = LocalSocket::connect(name, reason);
  ASSERT_TRUE(client.send(message, something(), reason));
  EXPECT_FALSE(client.hung_up());
  listener = LocalSocket();
  EXPECT_TRUE(client.hung_up());
  EXPECT_FALSE(client.send(message, something(), reason)) << "and sending does not raise a signal";
}

TEST_F(LocalSocketTest, WhateverDoesNotFitIsRefusedAndLeaksNothing) {
  for (const auto& [size, descriptors] : {std::pair{16u, 0u},
                                          {16u, 2u},
                                          {16u, 3u},
                                          {16u, 8u},
                                          {15u, 1u},
                                          {17u, 1u},
                                          {256u, 1u},
                                          {1u, 0u},
                                          {0u, 1u}}) {
    OtherProgram other(name);
    LocalSocket server = listener.accept(reason);
    other.send(size, descriptors);
    const std::size_t before = open_descriptors();
    EXPECT_EQ(server.receive(message, &attachment), Receipt::misfit) << size << " " << descriptors;
    EXPECT_FALSE(attachment);
    EXPECT_EQ(open_descriptors(), before) << size << " " << descriptors;
  }
}

TEST_F(LocalSocketTest, HangingUpAndHalfClosingAreTheEnd) {
  OtherProgram gone(name);
  LocalSocket one = listener.accept(reason);
  gone.hang_up();
  EXPECT_TRUE(one.hung_up());
  EXPECT_EQ(one.receive(message, &attachment), Receipt::end);
  OtherProgram silent(name);
  LocalSocket other = listener.accept(reason);
  silent.stop_writing();
  EXPECT_TRUE(other.hung_up());
}

}  // namespace
}  // namespace cluster::os
