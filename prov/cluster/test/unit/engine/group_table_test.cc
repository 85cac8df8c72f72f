// Groups of whole engines. There is no multicast between fake links: members with a roster are served over their flows.
#include "engine/group_table.h"

#include <gtest/gtest.h>

#include <new>
#include <vector>

#include "support/failing_memory.h"
#include "support/node.h"

namespace cluster::engine {
namespace {

using test::kA;
using test::kB;
using test::Node;

class GroupTableTest : public test::EngineTest, public protocol::GroupListener {
 protected:
  static constexpr std::uint64_t kKey = 77;

  GroupTableTest() {
    for (Node* node : {&a, &b}) {
      node->engine.attach(node->book, {.tx_queue = &node->sent, .rx_queue = &node->received, .groups = this});
    }
  }
  void group_joined(std::uint64_t) override { ++joined; }
  /// What `node` has received since the last call.
  static std::size_t received(Node& node) {
    std::size_t count = 0;
    node.received.drain(
        ~std::size_t{0}, [](const protocol::Completion&) { return true; },
        [&](const protocol::Completion& completion) { count += completion.status == Status::ok ? 1 : 0; });
    return count;
  }

  std::uint64_t join(Node& node, std::vector<SocketAddress> roster = {kA, kB}) {
    const std::byte ip[] = {std::byte{239}, std::byte{192}, std::byte{1}, std::byte{1}};
    const JoinOp op{.address = SocketAddress::v4(ip, 7000), .key = kKey, .role = {}, .roster = std::move(roster)};
    std::uint64_t handle = 0;
    EXPECT_EQ(node.engine.change_membership(&op, handle), Status::ok);
    return handle;
  }
  void send(Node& node, std::uint64_t group, bool more) {
    ++node.word;
    const ConstBytes slice = as_bytes(&node.word, sizeof node.word);
    EXPECT_EQ(node.engine.send({.slices = {&slice, 1}, .length = sizeof node.word, .to = group, .inject = true, .more = more}),
              Status::ok);
  }

  Node a{network, kA, kB, 1000};
  Node b{network, kB, kA, 1000};
  int joined = 0;
};

TEST_F(GroupTableTest, MembershipBeginsWhenAllOfTheRosterHaveJoined) {
  join(a);
  pass(a, b);
  EXPECT_EQ(joined, 0) << "the other is no member yet";
  join(b);
  pass(a, b);
  EXPECT_EQ(joined, 2);
}

TEST_F(GroupTableTest, OneThatIsNotInTheRosterIsNoMember) {
  join(a, {kA});
  join(b);
  pass(a, b);
  EXPECT_EQ(joined, 1) << "that of the one whose roster is empty but for itself";
}

TEST_F(GroupTableTest, WithoutMemoryNoMessageArrivesThatWasRefusedAndNoneTwice) {
  const std::uint64_t group = join(a);
  join(b);
  pass(a, b);
  std::size_t accepted = 0, refused = 0, arrived = 0;
  for (std::size_t allowed = 0; allowed < 40; ++allowed) {
    b.receive();
    try {
      const test::FailingMemory memory(allowed, 1);
      send(a, group, false);
      ++accepted;
    } catch (const std::bad_alloc&) {
      ++refused;
    }
    clock.advance(10ms);
    pass(a, b);
    arrived += received(b);
  }
  EXPECT_GT(refused, 0u);
  EXPECT_LE(arrived, accepted);
  EXPECT_GT(arrived, 0u);
}

/// A turn without news leaves a group out: these are news.
TEST_F(GroupTableTest, WhatIsToBeFollowedByMoreLeavesInALaterTurn) {
  const std::uint64_t group = join(a);
  join(b);
  pass(a, b);
  b.receive();
  send(a, group, true);
  pass(a, b);
  EXPECT_EQ(b.got, a.word);
}

TEST_F(GroupTableTest, AMessageThatCameBeforeItsReceiveIsDelivered) {
  const std::uint64_t group = join(a);
  join(b);
  pass(a, b);
  send(a, group, false);
  pass(a, b);
  b.receive();
  pass(a, b);
  EXPECT_EQ(b.got, a.word);
}

/// A thread that sleeps takes no turn for it.
TEST_F(GroupTableTest, AReceiveTakesUpWhatTheGroupHolds) {
  EngineSettings narrow = test::node_settings();
  narrow.unexpected_max = narrow.unexpected_hard_max = 4;
  Node c(network, test::node_name(4), kA, 1000, nullptr, narrow);
  c.engine.attach(c.book, {.tx_queue = &c.sent, .rx_queue = &c.received, .groups = this});
  a.book.insert(c.engine.name());
  const std::uint64_t group = join(a, {kA, c.engine.name()});
  join(c, {kA, c.engine.name()});
  pass(a, c);
  constexpr std::uint64_t kMessages = 20;
  for (std::uint64_t i = 0; i < kMessages; ++i) send(a, group, false);
  pass(a, c);
  ASSERT_LT(c.engine.unexpected_messages(), kMessages) << "the others are held";
  for (std::uint64_t i = 1; i <= kMessages; ++i) {
    c.receive();
    EXPECT_EQ(c.got, i);
  }
  EXPECT_EQ(received(c), kMessages);
}

/// More than one turn delivers.
TEST_F(GroupTableTest, WhatHadComeFromAMemberThatIsLostIsDelivered) {
  constexpr std::uint64_t kMessages = 2000;
  const std::uint64_t group = join(a);
  join(b);
  pass(a, b);
  for (std::uint64_t i = 0; i < kMessages; ++i) b.receive();
  for (std::uint64_t i = 0; i < kMessages; ++i) send(a, group, i + 1 < kMessages);
  pass(a);
  std::size_t count = 0;
  b.engine.poll();
  count += received(b);
  const std::uint64_t arrived = b.counters().frames_received;
  Node restarted(network, kA, kB, 2000);
  restarted.send();
  for (int i = 0; i < 4; ++i) {
    clock.advance(20us);
    restarted.engine.poll();
    b.engine.poll();
  }
  count += received(b);
  EXPECT_EQ(count, kMessages) << arrived;
}

TEST_F(GroupTableTest, OneThatLeavesIsGoneAndTheOtherGoesOn) {
  const std::uint64_t group = join(a);
  std::uint64_t left = join(b);
  pass(a, b);
  EXPECT_EQ(b.engine.change_membership(nullptr, left), Status::ok);
  pass(a, b);
  EXPECT_EQ(a.logged("has left"), 1u);
  send(a, group, false);
  pass(a, b);
  left = join(b);
  pass(a, b);
  EXPECT_EQ(joined, 3);
  b.receive();
  send(a, group, false);
  pass(a, b);
  EXPECT_EQ(b.got, a.word) << "not the one that was sent before it came back";
}

}  // namespace
}  // namespace cluster::engine
