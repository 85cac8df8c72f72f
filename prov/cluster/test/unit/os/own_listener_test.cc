// A name held by another user does not hide a listener from the processes that look for it.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <string>
#include <vector>

#include "os/local_socket.h"

namespace cluster::os {
namespace {

class OwnListenerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
    name = "own-listener-test-" + std::to_string(::getpid());
  }
  void TearDown() override {
    for (const pid_t holder : holders_) {
      ::kill(holder, SIGKILL);
      ::waitpid(holder, nullptr, 0);
    }
  }
  /// A process of another user has the name from now on.
  void hold(const std::string& held, bool listens) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t holder = ::fork();
    if (holder == 0) {
      bool held_now = ::setresuid(65534, 65534, 65534) == 0;
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      held.copy(address.sun_path + 1, held.size());
      const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
      const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + held.size());
      held_now = held_now && ::bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0;
      if (listens) held_now = held_now && ::listen(socket, 1) == 0;
      if (held_now) [[maybe_unused]]
        const ssize_t said = ::write(ready[1], "", 1);
      ::close(ready[1]);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char word;
    const ssize_t got = ::read(ready[0], &word, 1);
    ::close(ready[0]);
    holders_.push_back(holder);
    ASSERT_EQ(got, 1);
  }

  std::string name;
  std::string reason;

 private:
  std::vector<pid_t> holders_;
};

TEST_F(OwnListenerTest, WithoutAnotherUserTheNameIsTheNameItself) {
  const LocalSocket listener = listen_as_own(name, reason);
  ASSERT_TRUE(listener) << reason;
  EXPECT_TRUE(LocalSocket::connect(name, reason));
  EXPECT_TRUE(connect_to_own(name, true, reason));
  EXPECT_FALSE(listen_as_own(name, reason)) << "this user has it already";
  EXPECT_NE(reason, "");
}

TEST_F(OwnListenerTest, AListenerWhoseNameAnotherUserHoldsIsFoundAllTheSame) {
  for (const bool listens : {true, false}) {
    const std::string held = name + (listens ? "-listens" : "-does-not");
    hold(held, listens);
    const LocalSocket listener = listen_as_own(held, reason);
    ASSERT_TRUE(listener) << reason;
    const LocalSocket found = connect_to_own(held, true, reason);
    ASSERT_TRUE(found) << reason;
    EXPECT_TRUE(found.same_user());
    EXPECT_TRUE(listener.accept(reason)) << "it is that one";
  }
}

TEST_F(OwnListenerTest, AnAlternativeOfAnotherUserIsNotTaken) {
  hold(name, true);
  hold(name + "/0000000000000001", true);
  EXPECT_FALSE(connect_to_own(name, true, reason));
  EXPECT_NE(reason.find("another user"), std::string::npos);
  const LocalSocket listener = listen_as_own(name, reason);
  ASSERT_TRUE(listener) << reason;
  const LocalSocket found = connect_to_own(name, true, reason);
  ASSERT_TRUE(found) << reason;
  EXPECT_TRUE(found.same_user());
}

TEST_F(OwnListenerTest, AnotherUsersFullAlternativeIsNoReasonToWaitWhereNobodyIsExpected) {
  hold(name, true);
  hold(name + "/0000000000000001", true);
  std::vector<LocalSocket> waiting;
  bool full = false;
  while (!full && waiting.size() < 100)
    waiting.push_back(LocalSocket::connect(name + "/0000000000000001", reason, &full));
  ASSERT_TRUE(full);
  EXPECT_FALSE(connect_to_own(name, true, reason, &full));
  EXPECT_TRUE(full);
  EXPECT_FALSE(connect_to_own(name, false, reason, &full));
  EXPECT_FALSE(full);
}

TEST_F(OwnListenerTest, NoListenerIsLookedForWhereNoneIsExpected) {
  hold(name, false);
  const LocalSocket listener = listen_as_own(name, reason);
  ASSERT_TRUE(listener) << reason;
  EXPECT_FALSE(connect_to_own(name, false, reason));
  EXPECT_TRUE(connect_to_own(name, true, reason)) << reason;
}

}  // namespace
}  // namespace cluster::os
