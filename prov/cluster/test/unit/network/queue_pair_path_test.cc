// Whole engines with an RDMA device beside Ethernet: frames take the path between the queue pairs, with a key
// as well. A queue pair may be replaced in mid-session, even on both sides at once.
#include <gtest/gtest.h>

#include <optional>
#include <string_view>

#include "engine/engine.h"
#include "multipath/link_bundle.h"
#include "seal/sealed_link.h"
#include "support/fake_network.h"
#include "support/queue_pair_address.h"
#include "support/seal_keys.h"

namespace cluster::engine {
namespace {

using test::FakeLink;
using test::FakeNetwork;
using test::queue_pair;

constexpr std::size_t kMtu = 1024;

SocketAddress name_of(int node) {
  const std::byte ip[] = {std::byte{10}, std::byte{0}, std::byte{0}, static_cast<std::byte>(node)};
  return SocketAddress::v4(ip, 9228);
}

struct DeviceNode {
  DeviceNode(FakeNetwork& network, int number, bool keyed)
      : world{.clock = network.clock(), .random = test::FakeRandom(static_cast<std::uint64_t>(number))},
        engine(parts(network, number, keyed)) {
    engine.attach(book, {.tx_queue = &sent, .rx_queue = &received});
  }
  EngineParts parts(FakeNetwork& network, int number, bool keyed) {
    auto ethernet = std::make_unique<FakeLink>(network, name_of(number));
    auto verbs = std::make_unique<FakeLink>(network, queue_pair(number, 17));
    device = verbs.get();
    std::vector<std::unique_ptr<link::Link>> made;
    made.push_back(std::move(ethernet));
    made.push_back(std::move(verbs));
    EngineSettings settings;
    settings.linger = 0s;
    std::unique_ptr<link::Link> link = std::make_unique<multipath::LinkBundle>(std::move(made));
    if (keyed)
      link = std::make_unique<seal::SealedLink>(
          std::move(link), test::credentials({"device"}), std::vector{name_of(number)},
          Environment{world.clock, world.random, world.log, world.counters});
    return {
        .environment = {world.clock, world.random, world.log, world.counters},
        .settings = settings,
        .name = name_of(number),
        .epoch = 1000,
        .link = std::move(link),
        .local_listener = nullptr,
        .resources = nullptr,
        .rails = {{name_of(number), 24, "eth0"}, {queue_pair(number, 17), 96 + 24, "rxe0/1", kMtu, true}}};
  }
  void send(AddressTable::Handle to) {
    const ConstBytes slice = bytes;
    EXPECT_EQ(engine.send({.slices = {&slice, 1}, .length = slice.size(), .to = to}), Status::ok);
  }
  std::size_t acknowledged() {
    std::size_t count = 0;
    sent.drain(
        ~std::size_t{0}, [](const protocol::Completion&) { return true; },
        [&](const protocol::Completion& each) { count += each.status == Status::ok ? 1U : 0U; });
    return count;
  }

  struct World {
    test::FakeClock& clock;
    test::FakeRandom random;
    test::FakeLog log{};
    Counters counters{};
  } world;
  FakeLink* device = nullptr;
  AddressTable book;
  protocol::CompletionQueue sent;
  protocol::CompletionQueue received;
  std::vector<std::byte> bytes = std::vector<std::byte>(5000);
  Engine engine;
};

struct QueuePairPath : testing::TestWithParam<bool> {
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
  void begin() {
    a.emplace(network, 1, GetParam());
    b.emplace(network, 2, GetParam());
    to_a = b->book.insert(name_of(1));
    to_b = a->book.insert(name_of(2));
    await_device();
  }
  void run(Duration time) {
    for (const Time end = clock.now() + time; clock.now() < end; clock.advance(20us)) {
      a->engine.poll();
      b->engine.poll();
    }
  }
  /// Both sides send a message and get it.
  void exchange() {
    ++exchanged;
    a->send(to_b);
    b->send(to_a);
    run(20ms);
    EXPECT_EQ(a->engine.unexpected_messages(), exchanged);
    EXPECT_EQ(b->engine.unexpected_messages(), exchanged);
    EXPECT_EQ(a->acknowledged(), 1U);
    EXPECT_EQ(b->acknowledged(), 1U);
  }
  void receive_all() {
    std::vector<std::byte> into(5000);
    const Bytes slice = into;
    for (DeviceNode* const node : {&*a, &*b}) {
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

  test::FakeClock clock;
  FakeNetwork network{clock, 1};
  bool device_is_gone = false;
  std::size_t by_device = 0;  ///< frames that queue pairs have carried
  std::size_t longest = 0;    ///< frame to a queue pair
  FakeNetwork::Packet last_to_device;
  std::size_t exchanged = 0;
  std::optional<DeviceNode> a;
  std::optional<DeviceNode> b;
  AddressTable::Handle to_a{};
  AddressTable::Handle to_b{};
};

TEST_P(QueuePairPath, CarriesFramesUpToTheMtuOfTheDevice) {
  begin();
  EXPECT_EQ(longest, kMtu);
  EXPECT_EQ(a->world.counters.refused_forged + a->world.counters.refused_malformed, 0U);
}

/// A seal must not make a frame longer than the device carries.
TEST_P(QueuePairPath, EveryLengthFits) {
  begin();
  for (std::size_t size = 900; size < 1040; ++size) {
    a->bytes.resize(size);
    exchange();
    receive_all();
  }
  EXPECT_EQ(longest, kMtu);
}

TEST_P(QueuePairPath, ANewQueuePairIsFound) {
  begin();
  lose_device();
  a->device->readdress(queue_pair(1, 18));
  device_is_gone = false;
  await_device();
}

TEST_P(QueuePairPath, NewQueuePairsOnBothSidesFindEachOther) {
  begin();
  lose_device();
  a->device->readdress(queue_pair(1, 18));
  b->device->readdress(queue_pair(2, 19));
  device_is_gone = false;
  await_device();
}

TEST_P(QueuePairPath, IsFoundAgainAlthoughNobodyHasNoticedTheLoss) {
  begin();
  b->device->readdress(queue_pair(2, 19));
  run(1ms);
  await_device();
}

/// At each step of first contact, the peer may have kept an opening that names the former queue pair.
TEST_P(QueuePairPath, AQueuePairThatIsReplacedDuringFirstContactIsFound) {
  for (int step = 0; step < 16; ++step) {
    const int one = 2 * step + 1, other = one + 1;
    a.emplace(network, one, GetParam());
    b.emplace(network, other, GetParam());
    to_a = b->book.insert(name_of(one));
    to_b = a->book.insert(name_of(other));
    a->send(to_b);
    for (int turn = 0; turn < step; ++turn, clock.advance(20us)) (turn % 2 == 0 ? a : b)->engine.poll();
    b->device->readdress(queue_pair(other, 18));
    run(20ms);
    EXPECT_EQ(a->acknowledged(), 1U);
    b->send(to_a);
    run(20ms);
    EXPECT_EQ(b->acknowledged(), 1U);
    exchanged = 1;
    SCOPED_TRACE(step);
    await_device();
  }
}

TEST_P(QueuePairPath, LaterSessionsLearnTheNewQueuePairFromTheOpening) {
  begin();
  a->device->readdress(queue_pair(1, 18));
  run(1ms);
  b.emplace(network, 3, GetParam());
  to_a = b->book.insert(name_of(1));
  to_b = a->book.insert(name_of(3));
  receive_all();
  await_device();
}

INSTANTIATE_TEST_SUITE_P(, QueuePairPath, testing::Bool(),
                         [](const auto& each) { return each.param ? "WithAKey" : "WithoutAKey"; });

struct KeyedQueuePairPath : QueuePairPath {
  void inject(const SocketAddress& from, const SocketAddress& to, ConstBytes frame) {
    FakeLink stranger(network, from);
    link::send_frame(stranger, frame, {to, {}, false});
    run(1ms);
  }
};

/// What a key refuses on Ethernet, it refuses at a queue pair.
TEST_P(KeyedQueuePairPath, RefusesWhatIsNotGenuine) {
  begin();
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
