#include "shm/ring_listener.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/hello.h"
#include "support/process_address.h"
#include "unit/shm/ring_memory.h"

namespace cluster::shm {
namespace {

/// One that has not been used.
SocketAddress fresh_peer_name() {
  static std::uint16_t next = 0;
  return test::process_address(++next);
}

class RingListenerTest : public ::testing::Test {
 protected:
  std::unique_ptr<LocalListener> open(const SocketAddress& name, std::uint64_t epoch) {
    std::string reason;
    std::unique_ptr<LocalListener> host =
        open_listener(name, epoch, ShmSettings{}, surroundings.environment(), reason);
    EXPECT_TRUE(host) << reason;
    return host;
  }
  std::unique_ptr<Outbox> connect_to(const SocketAddress& peer) {
    Connection connection = alice->connect(peer);
    EXPECT_TRUE(connection.outbox) << connection.reason;
    return std::move(connection.outbox);
  }
  static bool post(Outbox& outbox, std::uint64_t number, std::size_t size) {
    const Message message(number, size);
    return outbox.post(message.segment, message.gather(), carrier::PayloadMode::copy, 0);
  }
  static bool shows(Inbox& inbox, std::uint64_t number, std::size_t size) {
    PeekedSegment arrival;
    return inbox.peek(arrival) && Message(number, size).equals(arrival.segment, arrival.payload);
  }
  /// A peer that speaks the first words itself.
  os::LocalSocket raw_connection() {
    std::string reason;
    os::LocalSocket socket = os::LocalSocket::connect(socket_name(bob_name), reason);
    EXPECT_TRUE(socket) << reason;
    return socket;
  }
  void greet(const os::LocalSocket& socket, const Hello& hello, const os::Descriptor& file) {
    std::string reason;
    ASSERT_TRUE(socket.send(as_bytes(&hello, sizeof hello), file, reason)) << reason;
  }
  static os::Descriptor memory_file(std::size_t size, int seals) {
    os::Descriptor file(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(::ftruncate(file.number(), static_cast<off_t>(size)), 0);
    if (seals != 0) {
      EXPECT_EQ(::fcntl(file.number(), F_ADD_SEALS, seals), 0);
    }
    return file;
  }
  void expect_refused(const std::string& because) {
    bob->accept(inboxes);
    EXPECT_TRUE(inboxes.empty());
    EXPECT_EQ(surroundings.counters.shm_refused, 1u);
    EXPECT_NE(surroundings.said.find(because), std::string::npos) << surroundings.said;
  }

  static constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  Surroundings surroundings;
  SocketAddress alice_name = fresh_peer_name();
  SocketAddress bob_name = fresh_peer_name();
  std::unique_ptr<LocalListener> alice = open(alice_name, 11);
  std::unique_ptr<LocalListener> bob = open(bob_name, 22);
  std::vector<std::unique_ptr<Inbox>> inboxes;
};

TEST_F(RingListenerTest, FirstMessagesAreWrittenBeforeThePeerKnows) {
  const std::unique_ptr<Outbox> outbox = connect_to(bob_name);
  EXPECT_TRUE(outbox->traits().acknowledges_on_post);
  ASSERT_TRUE(post(*outbox, 1, 8));
  ASSERT_TRUE(post(*outbox, 2, 30'000));
  EXPECT_FALSE(outbox->drained());
  bob->accept(inboxes);
  ASSERT_EQ(inboxes.size(), 1u);
  Inbox& inbox = *inboxes[0];
  EXPECT_EQ(inbox.peer(), alice_name);
  EXPECT_EQ(inbox.peer_epoch(), 11u);
  EXPECT_TRUE(shows(inbox, 1, 8));
  inbox.pop();
  EXPECT_TRUE(shows(inbox, 2, 30'000));
  inbox.pop();
  PeekedSegment arrival;
  EXPECT_FALSE(inbox.peek(arrival));
  EXPECT_TRUE(outbox->drained());
  EXPECT_EQ(surroundings.counters.shm_sent, 2u);
  EXPECT_EQ(surroundings.counters.shm_received, 2u);
  EXPECT_EQ(surroundings.counters.shm_attached, 2u);
  EXPECT_FALSE(outbox->peer_gone());
  EXPECT_FALSE(inbox.peer_gone());
  bob->accept(inboxes);
  EXPECT_EQ(inboxes.size(), 1u);
}

TEST_F(RingListenerTest, AnInboxIsQuietFromAVainLookUntilSomethingComes) {
  const std::unique_ptr<Outbox> outbox = connect_to(bob_name);
  bob->accept(inboxes);
  ASSERT_EQ(inboxes.size(), 1u);
  Inbox& inbox = *inboxes[0];
  PeekedSegment arrival;
  EXPECT_FALSE(inbox.unchanged()) << "there was no peek yet";
  EXPECT_FALSE(inbox.peek(arrival));
  EXPECT_TRUE(inbox.unchanged());
  ASSERT_TRUE(post(*outbox, 1, 8) && post(*outbox, 2, 8));
  EXPECT_FALSE(inbox.unchanged());
  EXPECT_TRUE(shows(inbox, 1, 8));
  inbox.pop();
  EXPECT_TRUE(inbox.has_next());
  EXPECT_TRUE(shows(inbox, 2, 8));
  inbox.pop();
  EXPECT_FALSE(inbox.has_next());
  EXPECT_FALSE(inbox.unchanged() || outbox->drained()) << "what was taken has not been given back";
  EXPECT_FALSE(inbox.peek(arrival));
  EXPECT_TRUE(inbox.unchanged() && outbox->drained());
  ASSERT_TRUE(post(*outbox, 3, 48));
  EXPECT_TRUE(shows(inbox, 3, 48));
  inbox.pop();
  EXPECT_FALSE(inbox.peek(arrival));
  EXPECT_FALSE(inbox.unchanged()) << "looks fetch the second line of the next";
}

TEST_F(RingListenerTest, AnEndpointReachesItself) {
  const std::unique_ptr<Outbox> outbox = connect_to(alice_name);
  ASSERT_TRUE(post(*outbox, 1, 100));
  alice->accept(inboxes);
  ASSERT_EQ(inboxes.size(), 1u);
  EXPECT_EQ(inboxes[0]->peer(), alice_name);
  EXPECT_TRUE(shows(*inboxes[0], 1, 100));
}

TEST_F(RingListenerTest, WhatADeadPeerWroteIsStillRead) {
  std::unique_ptr<Outbox> outbox = connect_to(bob_name);
  ASSERT_TRUE(post(*outbox, 1, 8));
  ASSERT_TRUE(post(*outbox, 2, 1000));
  outbox.reset();
  bob->accept(inboxes);
  ASSERT_EQ(inboxes.size(), 1u) << "even if it died before it was accepted";
  EXPECT_TRUE(inboxes[0]->peer_gone());
  EXPECT_TRUE(shows(*inboxes[0], 1, 8));
  inboxes[0]->pop();
  EXPECT_TRUE(shows(*inboxes[0], 2, 1000));
  inboxes[0]->pop();
  PeekedSegment arrival;
  EXPECT_FALSE(inboxes[0]->peek(arrival));
  EXPECT_FALSE(inboxes[0]->broken());
}

TEST_F(RingListenerTest, TheWriterLearnsThatItsPeerIsGone) {
  const std::unique_ptr<Outbox> early = connect_to(bob_name);
  const std::unique_ptr<Outbox> late = connect_to(bob_name);
  bob->accept(inboxes);
  ASSERT_EQ(inboxes.size(), 2u);
  const std::unique_ptr<Outbox> waiting = connect_to(bob_name);
  inboxes.erase(inboxes.begin());
  EXPECT_TRUE(early->peer_gone());
  EXPECT_FALSE(late->peer_gone());
  EXPECT_FALSE(waiting->peer_gone());
  bob.reset();
  EXPECT_TRUE(waiting->peer_gone()) << "never accepted";
  EXPECT_FALSE(late->peer_gone()) << "the inbox lives on without its host";
  EXPECT_TRUE(post(*late, 1, 8));
  EXPECT_TRUE(shows(*inboxes[0], 1, 8));
}

TEST_F(RingListenerTest, SaysWhyAPeerIsNotReached) {
  const Connection none = alice->connect(fresh_peer_name());
  EXPECT_FALSE(none.outbox);
  EXPECT_NE(none.reason.find("no process on this node offers"), std::string::npos) << none.reason;
  EXPECT_FALSE(alice->connect(SocketAddress{}).outbox);
  EXPECT_FALSE(alice->connect(test::process_address(0)).outbox);
}

TEST_F(RingListenerTest, ANameInUseOrNoNameCannotBeOpened) {
  std::string reason;
  EXPECT_FALSE(open_listener(bob_name, 1, ShmSettings{}, surroundings.environment(), reason));
  EXPECT_NE(reason.find("in use"), std::string::npos) << reason;
  EXPECT_FALSE(open_listener(SocketAddress{}, 1, ShmSettings{}, surroundings.environment(), reason));
}

TEST_F(RingListenerTest, TheHelloMayComeLater) {
  const os::LocalSocket socket = raw_connection();
  bob->accept(inboxes);
  EXPECT_TRUE(inboxes.empty());
  greet(socket, {alice_name, 5, kSmall}, memory_file(kSmall.total_bytes(), kSeals));
  bob->accept(inboxes);
  ASSERT_EQ(inboxes.size(), 1u);
  EXPECT_EQ(inboxes[0]->peer_epoch(), 5u);
}

TEST_F(RingListenerTest, AConnectionThatClosesBeforeItsHelloIsForgotten) {
  os::LocalSocket socket = raw_connection();
  bob->accept(inboxes);
  socket = os::LocalSocket();
  bob->accept(inboxes);
  EXPECT_TRUE(inboxes.empty());
  EXPECT_EQ(surroundings.counters.shm_refused, 0u);
}

TEST_F(RingListenerTest, HalfOpenConnectionsAreBoundedAndDelayNoOther) {
  std::vector<os::LocalSocket> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(raw_connection());
  for (int i = 0; i < 20; ++i) bob->accept(inboxes);
  const std::unique_ptr<Outbox> outbox = connect_to(bob_name);
  ASSERT_TRUE(post(*outbox, 1, 8));
  bob->accept(inboxes);
  EXPECT_TRUE(inboxes.empty()) << "waits in the kernel's queue";
  EXPECT_FALSE(outbox->peer_gone());
  silent.clear();
  for (int i = 0; i < 20; ++i) bob->accept(inboxes);
  ASSERT_EQ(inboxes.size(), 1u);
  EXPECT_TRUE(shows(*inboxes[0], 1, 8));
}

TEST_F(RingListenerTest, SilentConnectionsGiveTheirPlacesUpOnceOthersWaitForThem) {
  std::vector<os::LocalSocket> silent;
  for (std::size_t i = 0; i < RingListener::kHalfOpenMax; ++i) silent.push_back(raw_connection());
  for (int i = 0; i < 20; ++i) bob->accept(inboxes);
  const std::unique_ptr<Outbox> outbox = connect_to(bob_name);
  ASSERT_TRUE(post(*outbox, 1, 8));
  surroundings.time += RingListener::kHelloTime - 1ns;
  for (int i = 0; i < 20; ++i) bob->accept(inboxes);
  EXPECT_TRUE(inboxes.empty());
  surroundings.time += 1ns;
  bob->accept(inboxes);
  ASSERT_EQ(inboxes.size(), 1u);
  EXPECT_TRUE(shows(*inboxes[0], 1, 8));
  EXPECT_EQ(surroundings.counters.shm_refused, RingListener::kHalfOpenMax);
  EXPECT_TRUE(silent.front().refused());
}

/// All descriptors that this process may have are taken while it lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int used = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(used);
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(used);
    ::setrlimit(RLIMIT_NOFILE, &limit);
    for (;;) {  // what is free below the limit
      os::Descriptor filler(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      if (!filler) break;
      fillers_.push_back(std::move(filler));
    }
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
  std::vector<os::Descriptor> fillers_;
};

class ExhaustedListenerTest : public RingListenerTest {
  void SetUp() override {
#ifdef __clang__
#if __has_feature(undefined_behavior_sanitizer)
    GTEST_SKIP()
        << "UndefinedBehaviorSanitizer looks at types through a pipe, for which there is no descriptor";
#endif
#endif
  }
};

/// A ring that is attached needs no descriptor.
TEST_F(ExhaustedListenerTest, APeerIsAttachedNevertheless) {
  const std::unique_ptr<Outbox> outbox = connect_to(bob_name);
  ASSERT_TRUE(post(*outbox, 1, 8));
  {
    const NoDescriptors none;
    for (int i = 0; i < 3; ++i) bob->accept(inboxes);
  }
  ASSERT_EQ(inboxes.size(), 1u) << surroundings.said;
  EXPECT_TRUE(shows(*inboxes[0], 1, 8));
  EXPECT_FALSE(outbox->peer_gone() || inboxes[0]->peer_gone());
}

TEST_F(ExhaustedListenerTest, APeerWhoseHelloDoesNotComeIsRefusedAndKnowsWhy) {
  os::LocalSocket socket = raw_connection();
  {
    const NoDescriptors none;
    for (int i = 0; i < 3; ++i) bob->accept(inboxes);
  }
  expect_refused("no free file descriptor (raise the hard limit of open files, \"ulimit -Hn\")");
  EXPECT_TRUE(socket.refused());
}

TEST_F(ExhaustedListenerTest, ARefusalIsLoggedAlsoAfterThisSideCouldNotConnect) {
  os::LocalSocket socket = raw_connection();
  {
    const NoDescriptors none;
    EXPECT_FALSE(bob->connect(alice_name).outbox);
    EXPECT_NE(surroundings.said.find("cannot open shared memory"), std::string::npos) << surroundings.said;
    for (int i = 0; i < 3; ++i) bob->accept(inboxes);
  }
  EXPECT_NE(surroundings.said.find("refused shared memory for"), std::string::npos) << surroundings.said;
}

TEST_F(ExhaustedListenerTest, NothingIsRefusedUnlessAPeerConnects) {
  {
    const NoDescriptors none;
    for (int i = 0; i < 3; ++i) bob->accept(inboxes);
  }
  EXPECT_EQ(surroundings.said, "");
  EXPECT_EQ(surroundings.counters.shm_refused, 0u);
}

TEST_F(RingListenerTest, RefusesANonsenseHello) {
  Hello hello{alice_name, 5, kSmall};
  hello.geometry.slots = 77;
  const os::LocalSocket socket = raw_connection();
  greet(socket, hello, memory_file(kSmall.total_bytes(), kSeals));
  expect_refused("is invalid");
  EXPECT_TRUE(socket.hung_up());
}

TEST_F(RingListenerTest, RefusesAMessageThatIsNoHello) {
  std::string reason;
  const os::LocalSocket socket = raw_connection();
  const std::byte bytes[3] = {};
  ASSERT_TRUE(socket.send(bytes, memory_file(4096, 0), reason));
  expect_refused("process " + std::to_string(::getpid()) + ": its first message is not from this provider");
}

TEST_F(RingListenerTest, RefusesMemoryThatCouldShrink) {
  const os::LocalSocket socket = raw_connection();
  greet(socket, {alice_name, 5, kSmall}, memory_file(kSmall.total_bytes(), 0));
  expect_refused("not sealed");
}

TEST_F(RingListenerTest, RefusesMemoryOfAnotherSize) {
  const os::LocalSocket socket = raw_connection();
  greet(socket, {alice_name, 5, kSmall}, memory_file(kSmall.total_bytes() - 4096, kSeals));
  expect_refused("bytes instead of");
}

TEST_F(RingListenerTest, AScribblingWriterBreaksItsInboxOnce) {
  const os::LocalSocket socket = raw_connection();
  const os::Descriptor file = memory_file(kSmall.total_bytes(), kSeals);
  greet(socket, {alice_name, 5, kSmall}, file);
  bob->accept(inboxes);
  ASSERT_EQ(inboxes.size(), 1u);
  const std::uint32_t wild = 12345;
  ASSERT_EQ(::pwrite(file.number(), &wild, sizeof wild, static_cast<off_t>(kSmall.slots_begin())), 4);
  PeekedSegment arrival;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(inboxes[0]->peek(arrival));
  EXPECT_TRUE(inboxes[0]->broken());
  EXPECT_EQ(surroundings.counters.refused_malformed, 1u);
}

TEST_F(RingListenerTest, AReaderThatGivesBackTooMuchIsGone) {
  // Alice's peer is the test itself: it takes the memory out of the hello and scribbles over the head.
  std::string reason;
  const SocketAddress name = fresh_peer_name();
  const os::LocalSocket listener = os::LocalSocket::listen(socket_name(name), reason);
  ASSERT_TRUE(listener) << reason;
  const std::unique_ptr<Outbox> outbox = connect_to(name);
  os::LocalSocket socket = listener.accept(reason);
  Hello hello;
  os::Descriptor file;
  ASSERT_EQ(socket.receive(as_bytes(&hello, sizeof hello), &file), os::LocalSocket::Receipt::message);
  const std::uint32_t wild = 0x7fffffff;
  ASSERT_EQ(::pwrite(file.number(), &wild, sizeof wild, 0), 4);
  EXPECT_FALSE(outbox->peer_gone());
  int posted = 0;
  while (post(*outbox, 1, 8)) ASSERT_LT(++posted, 5000);
  EXPECT_TRUE(outbox->peer_gone());
  EXPECT_TRUE(outbox->peer_gone());
  EXPECT_EQ(surroundings.counters.refused_malformed, 1u);
}

TEST_F(RingListenerTest, AnotherUserIsRefusedByBothSides) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresuid(65534, 65534, 65534) != 0) ::_exit(2);
    const Connection connection = alice->connect(bob_name);
    ::_exit(!connection.outbox && connection.reason.find("another user") != std::string::npos ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  expect_refused("another user");
}

TEST(RingListenerName, SaysVersionAddressAndScope) {
  const std::byte loopback[] = {std::byte{127}, std::byte{0}, std::byte{99}, std::byte{1}};
  EXPECT_EQ(socket_name(SocketAddress::v4(loopback, 9)), "cluster-4/127.0.99.1:9");
  std::byte ip[16] = {std::byte{0xfe}, std::byte{0x80}};
  EXPECT_EQ(socket_name(SocketAddress::v6(ip, 9, 3)), "cluster-4/[fe80::]:9%3");
}

}  // namespace
}  // namespace cluster::shm
