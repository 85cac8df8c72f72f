// A third transport is one folder and one entry in a table: messages of all sizes, remote accesses and the loss of a peer need
// nothing else of the engine.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/engine.h"
#include "support/dummy_transport.h"
#include "support/node.h"

namespace cluster::test {
namespace {

using protocol::Completion;

class FurtherTransportTest : public testing::Test {
 protected:
  struct End {
    End(FurtherTransportTest& test, const SocketAddress& name, const SocketAddress& peer, std::uint64_t epoch)
        : fabric(test.fabric), random(epoch), memory(kMemory) {
      engine::EngineParts parts{.environment = {test.clock, random, log, counters},
                                .settings = node_settings(),
                                .name = name,
                                .epoch = epoch,
                                .link = nullptr,
                                .local_listener = nullptr,
                                .resources = nullptr};
      parts.further_transports.emplace_back([this](const transport::TransportContext& context) {
        auto made = std::make_unique<DummyTransport>(context, fabric);
        transport = made.get();
        return made;
      });
      regions.add(kKey, {memory.data(), 0, memory.size(), true, true, nullptr, nullptr});
      book.insert(peer);
      engine = std::make_unique<engine::Engine>(std::move(parts));
      attach({});
    }
    void attach(const protocol::Ordering& ordering) {
      engine->attach(book,
                     {.tx_queue = &done, .rx_queue = &received, .regions = &regions, .ordering = ordering});
    }
    Status send(ConstBytes bytes) { return engine->send({.slices = {&bytes, 1}, .length = bytes.size()}); }
    Status receive(Bytes bytes) {
      return engine->receive({.slices = {&bytes, 1}, .ignore = ~std::uint64_t{0}});
    }
    Status put(ConstBytes bytes, std::uint64_t address) {
      const protocol::RmaIov range{address, kKey, bytes.size()};
      protocol::WriteOp op;
      op.remote = {&range, 1};
      op.slices = {&bytes, 1};
      op.length = bytes.size();
      return engine->write(op);
    }
    Status get(Bytes bytes, std::uint64_t address) {
      const protocol::RmaIov range{address, kKey, bytes.size()};
      protocol::ReadOp op;
      op.remote = {&range, 1};
      op.slices = {&bytes, 1};
      op.length = bytes.size();
      return engine->read(op);
    }
    static std::vector<Completion> take(protocol::CompletionQueue& queue) {
      std::vector<Completion> taken;
      queue.drain(
          ~std::size_t{0}, [](const Completion&) { return true; },
          [&](const Completion& completion) { taken.push_back(completion); });
      return taken;
    }

    DummyFabric& fabric;
    FakeRandom random;
    FakeLog log;
    Counters counters;
    std::vector<std::byte> memory;
    protocol::RegionTable regions;
    transport::AddressTable book;
    protocol::CompletionQueue done, received;
    DummyTransport* transport = nullptr;
    std::unique_ptr<engine::Engine> engine;
  };

  static std::vector<std::byte> pattern(std::size_t size, unsigned seed = 1) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 + seed * 7 + (i >> 8));
    return bytes;
  }
  void pass(int turns = 400) {
    for (int i = 0; i < turns; ++i) {
      clock.advance(5us);
      a.engine->poll();
      b.engine->poll();
    }
  }

  static constexpr std::uint64_t kKey = 5;
  static constexpr std::size_t kMemory = 1 << 20;
  FakeClock clock;
  DummyFabric fabric;
  End a{*this, kA, kB, 1000};
  End b{*this, kB, kA, 2000};
};

TEST_F(FurtherTransportTest, CarriesMessagesOfAllSizes) {
  for (const std::size_t size : {0u, 8u, 5000u, 700000u}) {
    const auto data = pattern(size);
    std::vector<std::byte> got(size);
    ASSERT_EQ(b.receive(got), Status::ok);
    ASSERT_EQ(a.send(data), Status::ok);
    pass(2000);
    ASSERT_EQ(End::take(a.done).size(), 1u) << size;
    ASSERT_EQ(End::take(b.received).size(), 1u) << size;
    EXPECT_EQ(got, data);
  }
  EXPECT_STREQ(a.engine->carrier_name_of(0), "dummy");
}

TEST_F(FurtherTransportTest, CarriesPutsAndGets) {
  const auto data = pattern(300000);
  std::vector<std::byte> back(300000);
  ASSERT_EQ(a.put(data, 64), Status::ok);
  pass(2000);
  ASSERT_EQ(End::take(a.done).size(), 1u);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), b.memory.begin() + 64));
  ASSERT_EQ(a.get(back, 64), Status::ok);
  pass(2000);
  ASSERT_EQ(End::take(a.done).size(), 1u);
  EXPECT_EQ(back, data);
  ASSERT_EQ(a.put(data, kMemory - 1), Status::ok);
  pass();
  const auto refused = End::take(a.done);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].status, Status::access);
}

TEST_F(FurtherTransportTest, ALostPeerEndsItsOperationsAndMayComeBack) {
  const auto data = pattern(100000);
  ASSERT_EQ(a.send(data), Status::ok) << "the receiver never pulls it";
  pass();
  b.transport->unplug();
  pass();
  const auto done = End::take(a.done);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, Status::ended);
  ASSERT_EQ(a.send(pattern(8)), Status::ok);
  ASSERT_EQ(End::take(a.done).size(), 1u) << "fails at once";
  b.transport->plug();
  ASSERT_EQ(a.send(pattern(8)), Status::ok);
  pass();
  const auto again = End::take(a.done);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].status, Status::ok);
}

}  // namespace
}  // namespace cluster::test
