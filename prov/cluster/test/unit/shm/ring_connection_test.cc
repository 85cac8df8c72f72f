// The connection that delivers a ring, and how the peer's end is noticed without a connection.
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <thread>

#include "shm/hello.h"
#include "shm/local_listener.h"
#include "support/process_address.h"
#include "unit/shm/ring_memory.h"

namespace cluster::shm {
namespace {

class RingConnectionTest : public ::testing::Test {
 protected:
  std::unique_ptr<LocalListener> open(const SocketAddress& name) {
    std::string reason;
    std::unique_ptr<LocalListener> listener =
        open_listener(name, 1, ShmSettings{}, surroundings.environment(), reason);
    EXPECT_TRUE(listener) << reason;
    return listener;
  }
  std::unique_ptr<Outbox> connect() {
    Connection connection = alice->connect(bob_name);
    EXPECT_TRUE(connection.outbox) << connection.reason;
    return std::move(connection.outbox);
  }

  Surroundings surroundings;
  SocketAddress bob_name = test::process_address(1);
  std::unique_ptr<LocalListener> alice = open(test::process_address(2));
  std::unique_ptr<LocalListener> bob = open(bob_name);
  std::vector<std::unique_ptr<Inbox>> inboxes;
};

TEST_F(RingConnectionTest, TheConnectionHasDoneItsWorkWhenThePeerHasTheRing) {
  const std::unique_ptr<Outbox> outbox = connect();
  EXPECT_GE(outbox->connection_descriptor(), 0);
  EXPECT_FALSE(outbox->attached() || outbox->peer_gone());
  bob->accept(inboxes);
  ASSERT_EQ(inboxes.size(), 1u);
  EXPECT_TRUE(outbox->attached());
  EXPECT_FALSE(outbox->peer_gone()) << "though the connection has ended";
  EXPECT_TRUE(outbox->connected());
  outbox->close_connection(true);
  EXPECT_EQ(outbox->connection_descriptor(), -1);
  EXPECT_GE(outbox->process_descriptor(), 0);
  EXPECT_FALSE(outbox->peer_gone() || outbox->doorbell_gone());
  outbox->release_process();
  EXPECT_EQ(outbox->process_descriptor(), -1);
  EXPECT_FALSE(outbox->peer_gone() || outbox->peer_closed());
  inboxes.clear();
  EXPECT_TRUE(outbox->peer_closed() && outbox->peer_gone());
}

/// It closes the connection behind that, while this side looks at one and at the other.
TEST_F(RingConnectionTest, APeerThatAttachesMeanwhileIsNotGone) {
#ifdef CLUSTER_SANITIZED
  constexpr int kRounds = 500;
#else
  constexpr int kRounds = 3000;
#endif
  int gone = 0;
  for (int round = 0; round < kRounds; ++round) {
    inboxes.clear();
    const std::unique_ptr<Outbox> outbox = connect();
    std::thread peer([&] { bob->accept(inboxes); });
    while (!outbox->attached()) gone += outbox->peer_gone();
    peer.join();
  }
  EXPECT_EQ(gone, 0);
}

/// What a process leaves that executes another program: an attached ring, and no doorbell.
TEST_F(RingConnectionTest, ADoorbellThatIsGoneIsNoticed) {
  bob.reset();
  std::string reason;
  const os::LocalSocket listener = os::LocalSocket::listen(socket_name(bob_name), reason);
  ASSERT_TRUE(listener) << reason;
  const std::unique_ptr<Outbox> outbox = connect();
  os::LocalSocket socket = listener.accept(reason);
  Hello hello;
  os::Descriptor file;
  ASSERT_EQ(socket.receive(as_bytes(&hello, sizeof hello), &file), os::LocalSocket::Receipt::message);
  EXPECT_FALSE(outbox->doorbell_gone()) << "it has none before it has attached the ring";
  const std::uint64_t number = 77;
  const std::uint32_t attached = EndState::kAttached;
  ASSERT_EQ(::pwrite(file.number(), &number, sizeof number, offsetof(RingControl, reader_doorbell)), 8);
  ASSERT_EQ(::pwrite(file.number(), &attached, sizeof attached, offsetof(RingControl, reader_state)), 4);
  std::shared_ptr<os::Doorbell> doorbell = os::Doorbell::open(os::LocalName(doorbell_name(number)), reason);
  ASSERT_TRUE(outbox->attached() && doorbell != nullptr) << reason;
  outbox->close_connection(false);
  EXPECT_FALSE(outbox->doorbell_gone());
  doorbell.reset();
  EXPECT_TRUE(outbox->doorbell_gone());
}

/// Its peer may be asleep and has no other way to learn of it.
TEST_F(RingConnectionTest, EitherEndRingsWhenItCloses) {
  const auto rings = [](const LocalListener& listener) {
    pollfd watch{listener.doorbell(), POLLIN, 0};
    return ::poll(&watch, 1, 0) == 1;
  };
  std::unique_ptr<Outbox> outbox = connect();
  bob->accept(inboxes);
  ASSERT_EQ(inboxes.size(), 1u);
  EXPECT_FALSE(rings(*alice) || rings(*bob));
  EXPECT_FALSE(inboxes[0]->peer_closed());
  outbox.reset();
  EXPECT_TRUE(rings(*bob));
  EXPECT_TRUE(inboxes[0]->peer_closed());
  bob->clear_doorbell();
  EXPECT_FALSE(rings(*bob));
  inboxes.clear();
  EXPECT_TRUE(rings(*alice));
}

}  // namespace
}  // namespace cluster::shm
