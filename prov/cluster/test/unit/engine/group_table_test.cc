// Groups of whole engines. There is no multicast between fake links: members with a roster are served over their flows.
#include "engine/group_table.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <new>
#include <utility>
#include <vector>

#include "os/descriptor.h"
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
  void group_joined(void*) override { ++joined; }
  static std::size_t received(Node& node) { return test::take_count(node.received); }
  static JoinOp join_op(std::vector<SocketAddress> roster = {kA, kB}) {
    const std::byte ip[] = {std::byte{239}, std::byte{192}, std::byte{1}, std::byte{1}};
    return {.address = SocketAddress::v4(ip, 7000), .key = kKey, .role = {}, .roster = std::move(roster)};
  }
  std::uint64_t join(Node& node, std::vector<SocketAddress> roster = {kA, kB}) {
    const JoinOp op = join_op(std::move(roster));
    std::uint64_t handle = 0;
    EXPECT_EQ(node.engine.change_membership(&op, handle), Status::ok);
    return handle;
  }
  void leave(Node& node, std::uint64_t group) {
    EXPECT_EQ(node.engine.change_membership(nullptr, group), Status::ok);
  }
  void send(Node& node, std::uint64_t group, bool more, bool inject = true) {
    const std::uint64_t next = node.word + 1;
    const ConstBytes slice = as_bytes(&next, sizeof next);
    const Status status = node.engine.send(
        {.slices = {&slice, 1}, .length = sizeof next, .to = group, .inject = inject, .more = more});
    if (status == Status::no_memory) throw std::bad_alloc();  // as other parts of the call do
    EXPECT_EQ(status, Status::ok);
    node.word = next;
  }
  /// b must get each message of a once and in order, while a's allocations fail from some point on: where it
  /// posts a message, or in a turn.
  void send_short_of_memory(std::size_t failures, bool in_turn);

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

void GroupTableTest::send_short_of_memory(std::size_t failures, bool in_turn) {
  constexpr std::size_t kRounds = 40;
  const std::uint64_t group = join(a);
  join(b);
  pass(a, b);
  std::size_t refused = 0;
  std::vector<std::uint64_t> words(kRounds);
  for (std::uint64_t& word : words) {
    const Bytes slice = as_bytes(&word, sizeof word);
    EXPECT_EQ(b.engine.receive({.slices = {&slice, 1}, .ignore = ~std::uint64_t{0}}), Status::ok);
  }
  for (std::size_t allowed = 0; allowed < kRounds; ++allowed) {
    try {
      if (in_turn) send(a, group, true);
      const test::FailingMemory memory(allowed, failures);
      in_turn ? static_cast<void>(a.engine.poll()) : send(a, group, false);
    } catch (const std::bad_alloc&) {
      ++refused;
    }
    clock.advance(10ms);
    pass(a, b);
  }
  EXPECT_EQ(received(b), a.word);
  EXPECT_EQ(refused == 0, in_turn);
  for (std::uint64_t i = 0; i < a.word; ++i) EXPECT_EQ(words[i], i + 1);
}

TEST_F(GroupTableTest, WithoutMemoryEachMessageArrivesThatWasNotRefused) { send_short_of_memory(1, false); }
TEST_F(GroupTableTest, WithoutMemoryForAWhileEachMessageArrivesThatWasNotRefused) {
  send_short_of_memory(~std::size_t{0}, false);
}
TEST_F(GroupTableTest, ATurnWithoutMemoryLosesNothing) { send_short_of_memory(1, true); }
TEST_F(GroupTableTest, ATurnWithoutMemoryForAWhileLosesNothing) {
  send_short_of_memory(~std::size_t{0}, true);
}

/// Otherwise each refused message would keep one of the limited places.
TEST_F(GroupTableTest, AMessageThatWasRefusedLeavesNothing) {
  EngineSettings narrow = test::node_settings();
  narrow.tx_requests_max = 1;
  Node c(network, test::node_name(4), kA, 1000, nullptr, narrow);
  const std::uint64_t group = join(c, {c.engine.name()});
  send(c, group, false);
  std::size_t refused = 0;
  for (std::size_t allowed = 0; allowed < 10; ++allowed) {
    try {
      const test::FailingMemory memory(allowed);
      send(c, group, false);
    } catch (const std::bad_alloc&) {
      ++refused;
    }
    clock.advance(10ms);
    c.engine.poll();
    send(c, group, false);
  }
  EXPECT_GT(refused, 0u);
}

/// Otherwise the key of the next would find the one that was left behind.
TEST_F(GroupTableTest, AJoinThatFindsNoMemoryLeavesNoGroup) {
  std::size_t refused = 0;
  for (std::size_t allowed = 0; allowed < 60; ++allowed) {
    test::FakeNetwork other_network(clock, 1);
    Node c(other_network, kA, kB, 1000);
    Node d(other_network, kB, kA, 1000);
    for (Node* node : {&c, &d})
      node->engine.attach(node->book, {.tx_queue = &node->sent, .rx_queue = &node->received, .groups = this});
    const JoinOp op = join_op();
    try {
      const test::FailingMemory memory(allowed, 1);
      std::uint64_t group = 0;
      c.engine.change_membership(&op, group);
    } catch (const std::bad_alloc&) {
      ++refused;
      join(c);
    }
    join(d);
    joined = 0;
    for (int i = 0; i < 100 && joined < 2; ++i) {
      clock.advance(10ms);
      pass(c, d);
    }
    EXPECT_EQ(joined, 2) << allowed;
  }
  EXPECT_GT(refused, 3u);
}

class ReadableGroups final : public link::MulticastJoiner {
 public:
  class ReadableGroup final : public link::MulticastReceiver {
   public:
    std::size_t receive_burst(std::span<link::InFrame>) override { return 0; }
    int descriptor() const override { return bell_.number(); }

   private:
    os::Descriptor bell_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  };
  std::unique_ptr<link::MulticastReceiver> join(const SocketAddress&, std::span<const SocketAddress>,
                                                std::string&) override {
    return std::make_unique<ReadableGroup>();
  }
};

/// The set of descriptors cannot be opened with one that has been closed.
TEST_F(GroupTableTest, AJoinThatFindsNoMemoryLeavesNoDescriptor) {
  const JoinOp op = join_op({test::node_name(4), kB});
  std::size_t refused = 0;
  for (std::size_t allowed = 0; allowed < 60; ++allowed) {
    test::Node::World world(clock, 1);
    AddressTable book;
    protocol::CompletionQueue queue;
    Engine engine(EngineParts{.environment = world.environment(),
                              .settings = test::node_settings(),
                              .name = test::node_name(4),
                              .epoch = 1000,
                              .link = nullptr,
                              .local_listener = nullptr,
                              .resources = nullptr,
                              .multicast = std::make_unique<ReadableGroups>()});
    engine.attach(book, {.tx_queue = &queue, .rx_queue = &queue});
    try {
      const test::FailingMemory memory(allowed, 1);
      std::uint64_t group = 0;
      engine.change_membership(&op, group);
    } catch (const std::bad_alloc&) {
      ++refused;
      EXPECT_GE(engine.descriptor(), 0) << allowed;
    }
  }
  EXPECT_GT(refused, 3u);
}

/// A turn skips a group without news: these are news.
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
