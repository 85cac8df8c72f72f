// How long the frames of a long message from a group gather before a thread that is about to sleep looks again.
#include "engine/gather_time.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "support/node.h"

namespace cluster::engine {
namespace {

using test::kA;
using test::kB;

class GatherTimeTest : public testing::Test {
 protected:
  /// A look that brings frames that came so long after each other.
  void look(std::size_t frames, Duration each, bool under_way = true) {
    now += each * static_cast<std::int64_t>(frames);
    time.note(now, frames, under_way);
  }

  Time now{1s};
  GatherTime time;
};

TEST_F(GatherTimeTest, IsThatOfSixteenFrames) {
  look(1, 12us, false);
  look(4, 12us);
  EXPECT_EQ(time.take(700), 16 * 12us);
}

TEST_F(GatherTimeTest, IsThatOfTheFramesThatAreLeft) {
  look(1, 12us, false);
  look(4, 12us);
  EXPECT_EQ(time.take(6), 6 * 12us);
  look(4, 12us);
  EXPECT_EQ(time.take(4), Duration::zero()) << "48 us";
}

TEST_F(GatherTimeTest, IsNoneWhenNothingHasCome) {
  look(1, 12us, false);
  look(4, 12us);
  EXPECT_NE(time.take(700), Duration::zero());
  EXPECT_EQ(time.take(700), Duration::zero());
  time.note(now + 12us, 0, true);
  EXPECT_EQ(time.take(700), Duration::zero());
}

TEST_F(GatherTimeTest, IsNoneWhereFramesComeFastAndNeverLong) {
  look(1, 1us, false);
  look(64, 1us);
  EXPECT_EQ(time.take(700), Duration::zero());
  for (int i = 0; i < 100; ++i) look(1, 1ms);
  EXPECT_EQ(time.take(700), GatherTime::kLongest);
}

TEST_F(GatherTimeTest, APauseBetweenMessagesSaysNothing) {
  look(1, 12us, false);
  look(4, 12us);
  now += 10ms;
  look(1, 12us, false);
  EXPECT_EQ(time.take(700), 16 * 12us);
}

/// The group's address as one member hears it, or does not.
class GroupHearer final : public link::MulticastReceiver {
 public:
  GroupHearer(test::FakeNetwork& network, const SocketAddress& group) : link_(network, group) {}
  std::size_t receive_burst(std::span<link::InFrame> frames) override { return link_.receive_burst(frames); }
  int descriptor() const override { return -1; }

 private:
  test::FakeLink link_;
};

class GroupHearers final : public link::MulticastJoiner {
 public:
  GroupHearers(test::FakeNetwork& network, bool hears) : network_(network), hears_(hears) {}
  std::unique_ptr<link::MulticastReceiver> join(const SocketAddress& group, std::span<const SocketAddress>, std::string&) override {
    return std::make_unique<GroupHearer>(network_, hears_ ? group : test::kUnknownSource);
  }

 private:
  test::FakeNetwork& network_;
  bool hears_;
};

/// Two members, of which B hears what A sends.
class GroupGatherTest : public test::EngineTest {
 protected:
  struct Side {
    Side(GroupGatherTest& test, const SocketAddress& name, const SocketAddress& peer, std::uint64_t epoch)
        : world(test.clock, epoch),
          engine(EngineParts{.environment = world.environment(),
                             .settings = test::node_settings(),
                             .name = name,
                             .epoch = epoch,
                             .link = std::make_unique<test::FakeLink>(test.network, name),
                             .local_listener = nullptr,
                             .resources = nullptr,
                             .multicast = std::make_unique<GroupHearers>(test.network, name == kB)}) {
      book.insert(peer);
      engine.attach(book, {.tx_queue = &sent, .rx_queue = &received});
      const std::byte ip[] = {std::byte{239}, std::byte{192}, std::byte{1}, std::byte{1}};
      const JoinOp op{.address = SocketAddress::v4(ip, 7000), .key = 77, .role = {}, .roster = {kA, kB}};
      EXPECT_EQ(engine.change_membership(&op, group), Status::ok);
    }

    test::Node::World world;
    AddressTable book;
    protocol::CompletionQueue sent, received;
    std::uint64_t group = 0;
    Engine engine;
  };
  /// So long a thread that waits at B is to leave frames to gather.
  Duration gather_time() {
    Duration time{};
    b.engine.arm(&time);
    return time;
  }
  bool complete() {
    bool all = false;
    b.received.drain(
        1, [](const protocol::Completion&) { return true; }, [&](const protocol::Completion&) { all = true; });
    return all;
  }

  std::vector<std::byte> message_ = std::vector<std::byte>(200'000);
  std::vector<std::byte> buffer_ = std::vector<std::byte>(200'000);
  Side a{*this, kA, kB, 1000};
  Side b{*this, kB, kA, 2000};
};

TEST_F(GroupGatherTest, OnlyWhileAMessageIsUnderWay) {
  pass(a, b);
  const Bytes place(buffer_);
  ASSERT_EQ(b.engine.receive({.slices = {&place, 1}, .ignore = ~std::uint64_t{0}}), Status::ok);
  EXPECT_EQ(gather_time(), Duration::zero()) << "nothing has begun to come";
  const ConstBytes slice(message_);
  ASSERT_EQ(a.engine.send({.slices = {&slice, 1}, .length = slice.size(), .to = a.group}), Status::ok);
  std::size_t gathered = 0;
  bool all = false;
  for (int i = 0; i < 100'000 && !all; ++i) {
    clock.advance(5us);
    a.engine.poll();
    b.engine.poll();
    if (gather_time() > Duration::zero()) ++gathered;
    EXPECT_EQ(gather_time(), Duration::zero()) << "once for what has come";
    all = complete();
  }
  ASSERT_TRUE(all);
  EXPECT_GT(gathered, 5u);
  EXPECT_EQ(gather_time(), Duration::zero());
}

}  // namespace
}  // namespace cluster::engine
