// Peers of this node that have keys: messages wait until a peer has shown its key, and go over the network if what
// listens under its name has none.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "seal/local_proof.h"
#include "shm/ring_listener.h"
#include "support/node.h"

namespace cluster::engine {
namespace {

using test::kA;
using test::kB;
using test::Node;

class GreetingTest : public test::EngineTest {
 protected:
  std::unique_ptr<shm::LocalListener> listener(const SocketAddress& name, Node::World& world) {
    std::string reason;
    auto made = shm::open_listener(name, 1, {.keys = keys_}, world.environment(), reason);
    EXPECT_TRUE(made) << reason;
    return made;
  }

  /// No other process has it, so the names of the sockets are this process's.
  const seal::JobKeys keys_ = test::credentials({"key of process " + std::to_string(::getpid())}).keys;
  Node::World a_world_{clock, 1};
  Node::World b_world_{clock, 2};
};

TEST_F(GreetingTest, MessagesGoThroughTheRingBehindIt) {
  Node a(network, kA, kB, 1, listener(kA, a_world_));
  Node b(network, kB, kA, 2, listener(kB, b_world_));
  for (int i = 0; i < 3; ++i) {
    b.receive();
    a.send();
  }
  EXPECT_EQ(a.peer().carrier, std::string("shm"));
  EXPECT_TRUE(a.sent.empty()) << "nothing is complete that the peer may never take";
  for (int i = 0; i < 8; ++i) pass(a, b);
  EXPECT_EQ(b.got, 3u);
  EXPECT_EQ(a.peer().carrier, std::string("shm"));
  EXPECT_FALSE(a.peer().flow);
}

TEST_F(GreetingTest, WhatOnlyHasThePeersNameIsNotThePeer) {
  std::string reason;
  const os::LocalSocket squatter =
      os::LocalSocket::listen(shm::keyed_names(shm::socket_name(kB), keys_).front().socket, reason);
  ASSERT_TRUE(squatter) << reason;
  Node a(network, kA, kB, 1, listener(kA, a_world_));
  Node b(network, kB, kA, 2);
  b.receive();
  a.send();
  for (int i = 0; i < 4; ++i) pass(a, b);
  EXPECT_EQ(a.peer().carrier, std::string("shm")) << "it may be slow";
  const os::LocalSocket victim = squatter.accept(reason);
  const seal::ProofAnswer nonsense;
  ASSERT_TRUE(victim.send(as_bytes(&nonsense, sizeof nonsense)));
  for (int i = 0; i < 4; ++i) pass(a, b);
  EXPECT_EQ(b.got, 1u);
  EXPECT_EQ(a.peer().carrier, std::string("fake"));
  EXPECT_EQ(a.logged("has not proved that it has this endpoint's key"), 1u);
  EXPECT_EQ(a.counters().refused_forged, 1u);
}

/// What a group keeps of the ring must not outlive it.
TEST_F(GreetingTest, AMemberOfAGroupIsMetOverTheNetworkThen) {
  std::string reason;
  const os::LocalSocket squatter =
      os::LocalSocket::listen(shm::keyed_names(shm::socket_name(kB), keys_).front().socket, reason);
  ASSERT_TRUE(squatter) << reason;
  Node a(network, kA, kB, 1, listener(kA, a_world_));
  Node b(network, kB, kA, 2);
  struct Joined final : protocol::GroupListener {
    void group_joined(void*) override { ++count; }
    int count = 0;
  } joined;
  for (Node* node : {&a, &b}) {
    node->engine.attach(node->book,
                        {.tx_queue = &node->sent, .rx_queue = &node->received, .groups = &joined});
    const std::byte ip[] = {std::byte{239}, std::byte{192}, std::byte{1}, std::byte{1}};
    const JoinOp op{.address = SocketAddress::v4(ip, 7000), .key = 77, .role = {}, .roster = {kA, kB}};
    std::uint64_t handle = 0;
    ASSERT_EQ(node->engine.change_membership(&op, handle), Status::ok);
  }
  for (int i = 0; i < 4; ++i) pass(a, b);
  EXPECT_EQ(joined.count, 0);
  const os::LocalSocket victim = squatter.accept(reason);
  const seal::ProofAnswer nonsense;
  ASSERT_TRUE(victim.send(as_bytes(&nonsense, sizeof nonsense)));
  for (int i = 0; i < 8; ++i) pass(a, b);
  EXPECT_EQ(joined.count, 2);
}

TEST_F(GreetingTest, WhatNeverAnswersIsNotWaitedForForEver) {
  std::string reason;
  const os::LocalSocket squatter =
      os::LocalSocket::listen(shm::keyed_names(shm::socket_name(kB), keys_).front().socket, reason);
  ASSERT_TRUE(squatter) << reason;
  Node a(network, kA, kB, 1, listener(kA, a_world_));
  Node b(network, kB, kA, 2);
  b.receive();
  a.send();
  clock.advance(59s);
  pass(a, b);
  EXPECT_EQ(a.peer().carrier, std::string("shm"));
  clock.advance(2s);
  for (int i = 0; i < 4; ++i) pass(a, b);
  EXPECT_EQ(b.got, 1u);
}

}  // namespace
}  // namespace cluster::engine
