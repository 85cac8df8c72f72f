// Whole engines with an RDMA device beside Ethernet: frames take the path between the queue pairs, with a key
// as well. A queue pair may be replaced in mid-session, even on both sides at once.
#include <gtest/gtest.h>

#include <string_view>

#include "support/queue_pair_address.h"
#include "support/railed_pair.h"

namespace cluster::engine {
namespace {

using test::FakeLink;
using test::FakeNetwork;
using test::queue_pair;

constexpr std::size_t kMtu = 1024;
constexpr std::size_t kMessageBytes = 5000;

SocketAddress name_of(int node) {
  const std::byte ip[] = {std::byte{10}, std::byte{0}, std::byte{0}, static_cast<std::byte>(node)};
  return SocketAddress::v4(ip, 9228);
}

std::vector<multipath::Rail> rails_of(int node) {
  return {{name_of(node), 24, "eth0"}, {queue_pair(node, 17), 96 + 24, "rxe0/1", kMtu, true}};
}

struct QueuePairPath : test::RailedPairTest, testing::WithParamInterface<bool> {
  QueuePairPath() {
    network.drop = [this](const FakeNetwork::Packet& packet, const SocketAddress& to) {
      if (packet.from.verbs() != to.verbs()) return true;
      if (!to.verbs()) return false;
      longest = std::max(longest, packet.bytes.size());
      if (packet.bytes.size() > kMtu || device_is_gone) return true;
      ++by_device;
      last_to_device = packet;
      return false;
    };
  }
  void begin(int one = 1, int other = 2) {
    RailedPairTest::begin(rails_of(one), rails_of(other), GetParam());
    for (test::RailedNode* const node : {&*a, &*b}) node->message.resize(kMessageBytes);
  }
  void begin_with_device() {
    begin();
    await_device();
  }
  void exchange() { RailedPairTest::exchange(20ms); }
  static void replace_device(test::RailedNode& node, const SocketAddress& with) {
    node.links[1]->readdress(with);
  }
  void receive_all() {
    std::vector<std::byte> into(kMessageBytes);
    const Bytes slice = into;
    for (test::RailedNode* const node : {&*a, &*b}) {
      while (node->engine.unexpected_messages() != 0) {
        ASSERT_EQ(node->engine.receive({.slices = {&slice, 1}, .ignore = ~std::uint64_t{0}}), Status::ok);
        run(1ms);
      }
    }
    exchanged = 0;
  }
  std::string_view path_of_a() const { return a->engine.carrier_name_of(to_b); }
  std::string_view path_of_b() const { return b->engine.carrier_name_of(to_a); }
  /// Goes on until both sides use the path between the queue pairs.
  void await_device() {
    for (int i = 0; i < 100 && (path_of_a() != "verbs" || path_of_b() != "verbs"); ++i) exchange();
    EXPECT_EQ(path_of_a(), "verbs");
    EXPECT_EQ(path_of_b(), "verbs");
    by_device = 0;
    exchange();
    EXPECT_GT(by_device, 10U) << "the messages have taken the path between the queue pairs";
  }
  /// The devices are removed, and the paths fail.
  void lose_device() {
    device_is_gone = true;
    for (int i = 0; i < 100 && path_of_a() == "verbs"; ++i) exchange();
    EXPECT_EQ(path_of_a(), "fake");
  }

  bool device_is_gone = false;
  std::size_t by_device = 0;  ///< frames that queue pairs have carried
  std::size_t longest = 0;    ///< frame to a queue pair
  FakeNetwork::Packet last_to_device;
};

TEST_P(QueuePairPath, CarriesFramesUpToTheMtuOfTheDevice) {
  begin_with_device();
  EXPECT_EQ(longest, kMtu);
  EXPECT_EQ(a->world.counters.refused_forged + a->world.counters.refused_malformed, 0U);
}

/// A seal must not make a frame longer than the device carries.
TEST_P(QueuePairPath, EveryLengthFits) {
  begin_with_device();
  for (std::size_t size = 900; size < 1040; ++size) {
    a->message.resize(size);
    exchange();
    receive_all();
  }
  EXPECT_EQ(longest, kMtu);
}

TEST_P(QueuePairPath, ANewQueuePairIsFound) {
  begin_with_device();
  lose_device();
  replace_device(*a, queue_pair(1, 18));
  device_is_gone = false;
  await_device();
}

TEST_P(QueuePairPath, NewQueuePairsOnBothSidesFindEachOther) {
  begin_with_device();
  lose_device();
  replace_device(*a, queue_pair(1, 18));
  replace_device(*b, queue_pair(2, 19));
  device_is_gone = false;
  await_device();
}

TEST_P(QueuePairPath, IsFoundAgainAlthoughNobodyHasNoticedTheLoss) {
  begin_with_device();
  replace_device(*b, queue_pair(2, 19));
  run(1ms);
  await_device();
}

/// At each step of first contact, the peer may have kept an opening that names the former queue pair.
TEST_P(QueuePairPath, AQueuePairThatIsReplacedDuringFirstContactIsFound) {
  for (int step = 0; step < 16; ++step) {
    const int one = 2 * step + 1, other = one + 1;
    begin(one, other);
    a->send(to_b);
    for (int turn = 0; turn < step; ++turn, clock.advance(20us)) (turn % 2 == 0 ? a : b)->engine.poll();
    replace_device(*b, queue_pair(other, 18));
    run(20ms);
    EXPECT_EQ(test::take_count(a->sent), 1U);
    b->send(to_a);
    run(20ms);
    EXPECT_EQ(test::take_count(b->sent), 1U);
    exchanged = 1;
    SCOPED_TRACE(step);
    await_device();
  }
}

TEST_P(QueuePairPath, LaterSessionsLearnTheNewQueuePairFromTheOpening) {
  begin_with_device();
  replace_device(*a, queue_pair(1, 18));
  run(1ms);
  b.emplace(network, 3, rails_of(3), GetParam());
  b->message.resize(kMessageBytes);
  to_a = b->book.insert(name_of(1));
  to_b = a->book.insert(name_of(3));
  receive_all();
  await_device();
}

INSTANTIATE_TEST_SUITE_P(, QueuePairPath, testing::Bool(),
                         [](const auto& each) { return each.param ? "WithAKey" : "WithoutAKey"; });

struct KeyedQueuePairPath : QueuePairPath {
  void inject(const SocketAddress& from, const SocketAddress& to, ConstBytes frame) {
    RailedPairTest::inject(from, to, frame);
    run(1ms);
  }
};

/// What a key refuses on Ethernet, it refuses at a queue pair.
TEST_P(KeyedQueuePairPath, RefusesWhatIsNotGenuine) {
  begin_with_device();
  const SocketAddress to = queue_pair(1, 17), from = queue_pair(2, 17);
  network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress& at) {
    if (at == to) last_to_device = packet;
    return at == to;
  };
  b->send(to_a);
  b->engine.poll();
  const std::vector<std::byte> genuine = last_to_device.bytes;
  ASSERT_FALSE(genuine.empty());
  network.drop = nullptr;
  Counters& counters = a->world.counters;
  std::vector<std::byte> altered = genuine;
  altered.back() ^= std::byte{1};
  inject(from, to, altered);
  EXPECT_EQ(counters.refused_forged, 1U);
  std::vector<std::byte> unsealed = genuine;
  unsealed[offsetof(wire::FrameHeader, flags)] &= ~std::byte{wire::frame_flag::kSealed};
  inject(from, to, unsealed);
  EXPECT_EQ(counters.refused_unsealed, 1U);
  const std::uint64_t stale = counters.refused_stale;
  inject(queue_pair(5, 17), to, genuine);
  EXPECT_EQ(counters.refused_stale, stale + 1) << "it comes from a queue pair that the peer does not have";
  inject(from, to, genuine);
  inject(from, to, genuine);
  EXPECT_EQ(counters.refused_replayed, 1U);
}

INSTANTIATE_TEST_SUITE_P(, KeyedQueuePairPath, testing::Values(true));

}  // namespace
}  // namespace cluster::engine
