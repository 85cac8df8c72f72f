// A third transport is one folder and one entry in a table: all operations work over it, although its
// accesses to remote memory end late and in any order.
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
      fabric.regions[name] = &regions;
      book.insert(peer);
      engine = std::make_unique<engine::Engine>(std::move(parts));
      attach({});
    }
    void attach(const protocol::Ordering& ordering) {
      engine->attach(book,
                     {.tx_queue = &done, .rx_queue = &received, .regions = &regions, .ordering = ordering});
    }
    Status send(ConstBytes bytes) {
      return engine->send(
          {.slices = {&bytes, 1}, .handles = handle != nullptr ? &handle : nullptr, .length = bytes.size()});
    }
    Status receive(Bytes bytes) {
      return engine->receive({.slices = {&bytes, 1}, .ignore = ~std::uint64_t{0}});
    }
    Status put(ConstBytes bytes, std::uint64_t address, bool fence = false, bool inject = false) {
      const protocol::RmaIov range{address, kKey, bytes.size()};
      protocol::WriteOp op;
      op.remote = {&range, 1};
      op.slices = {&bytes, 1};
      op.length = bytes.size();
      op.fence = fence;
      op.inject = inject;
      op.handles = handle != nullptr ? &handle : nullptr;
      return engine->write(op);
    }
    Status get(Bytes bytes, std::uint64_t address, bool fence = false) {
      const protocol::RmaIov range{address, kKey, bytes.size()};
      protocol::ReadOp op;
      op.handles = handle != nullptr ? &handle : nullptr;
      op.remote = {&range, 1};
      op.slices = {&bytes, 1};
      op.length = bytes.size();
      op.fence = fence;
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
    void* handle = nullptr;  ///< of what is sent, put and got
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

TEST_F(FurtherTransportTest, PutsAndGetsEndLateInAnyOrder) {
  const auto data = pattern(300000);
  std::vector<std::vector<std::byte>> back(40, std::vector<std::byte>(1000));
  ASSERT_EQ(a.put(data, 64), Status::ok);
  EXPECT_TRUE(End::take(a.done).empty()) << "the call returns before it is over";
  pass();
  ASSERT_EQ(End::take(a.done).size(), 1u);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), b.memory.begin() + 64));
  for (std::size_t i = 0; i < back.size(); ++i) ASSERT_EQ(a.get(back[i], 64 + i * 1000), Status::ok);
  pass(2000);
  ASSERT_EQ(End::take(a.done).size(), back.size())
      << "those that the transport cannot take, the target serves";
  for (std::size_t i = 0; i < back.size(); ++i)
    EXPECT_TRUE(
        std::equal(back[i].begin(), back[i].end(), data.begin() + static_cast<std::ptrdiff_t>(i * 1000)));
  EXPECT_GT(fabric.accesses, 10u);
  EXPECT_GT(fabric.out_of_order, 0u);
}

TEST_F(FurtherTransportTest, WhatIsNotAllowedFails) {
  const auto data = pattern(8);
  ASSERT_EQ(a.put(data, kMemory - 1), Status::ok);
  pass();
  const auto done = End::take(a.done);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, Status::access);
}

TEST_F(FurtherTransportTest, AMessageComesAfterThePutsBeforeIt) {
  fabric.stalled = true;
  const auto data = pattern(8), message = pattern(8, 2);
  std::vector<std::byte> got(8);
  ASSERT_EQ(b.receive(got), Status::ok);
  ASSERT_EQ(a.put(data, 0), Status::ok);
  ASSERT_EQ(a.send(message), Status::ok);
  pass();
  EXPECT_TRUE(End::take(b.received).empty());
  fabric.stalled = false;
  pass();
  EXPECT_EQ(End::take(b.received).size(), 1u);
  EXPECT_EQ(End::take(a.done).size(), 2u);
}

TEST_F(FurtherTransportTest, AFenceWaitsForWhatIsPending) {
  const auto one = pattern(8), two = pattern(8, 2);
  for (int i = 0; i < 20; ++i) {
    std::vector<std::byte> back(8);
    ASSERT_EQ(a.put(one, 0), Status::ok);
    ASSERT_EQ(a.put(two, 0, true), Status::ok);
    ASSERT_EQ(a.get(back, 0, true), Status::ok);
    pass();
    ASSERT_EQ(End::take(a.done).size(), 3u);
    ASSERT_EQ(back, two);
  }
}

TEST_F(FurtherTransportTest, AnOrderThatWasAskedForIsKept) {
  a.attach({.read_after_write = true, .write_after_read = true, .write_after_write = true});
  for (unsigned i = 0; i < 20; ++i) {
    std::vector<std::byte> back(8);
    const auto first = pattern(8, 2 * i);
    ASSERT_EQ(a.put(first, 0), Status::ok);
    const auto kept = pattern(8, 2 * i + 1);
    ASSERT_EQ(a.put(kept, 0), Status::ok);
    ASSERT_EQ(a.get(back, 0), Status::ok);
    pass();
    ASSERT_EQ(End::take(a.done).size(), 3u);
    ASSERT_EQ(back, kept);
  }
}

TEST_F(FurtherTransportTest, AnInjectedPutMayBeChangedAtOnce) {
  auto data = pattern(64);
  const auto before = data;
  ASSERT_EQ(a.put(data, 0, false, true), Status::ok);
  ASSERT_EQ(a.put(data, 64, true, true), Status::ok) << "it has to wait";
  std::fill(data.begin(), data.end(), std::byte{0});
  pass();
  EXPECT_EQ(End::take(a.done).size(), 2u);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), b.memory.begin()));
  EXPECT_TRUE(std::equal(before.begin(), before.end(), b.memory.begin() + 64));
}

TEST_F(FurtherTransportTest, ALostPeerEndsWhatIsPending) {
  fabric.stalled = true;
  const auto data = pattern(8);
  std::vector<std::byte> back(8);
  ASSERT_EQ(a.put(data, 0), Status::ok);
  ASSERT_EQ(a.get(back, 0), Status::ok);
  ASSERT_EQ(a.put(data, 8, true), Status::ok);
  b.transport->unplug();
  pass();
  const auto done = End::take(a.done);
  ASSERT_EQ(done.size(), 3u);
  for (const Completion& each : done) EXPECT_EQ(each.status, Status::ended);
  ASSERT_EQ(a.put(data, 0), Status::ok);
  EXPECT_EQ(End::take(a.done).size(), 1u) << "fails at once";
}

TEST_F(FurtherTransportTest, ALostPeerMayComeBack) {
  ASSERT_EQ(a.send(pattern(100000)), Status::ok) << "the receiver never pulls it";
  pass();
  b.transport->unplug();
  pass();
  ASSERT_EQ(End::take(a.done).size(), 1u);
  b.transport->plug();
  ASSERT_EQ(a.send(pattern(8)), Status::ok);
  pass();
  const auto again = End::take(a.done);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].status, Status::ok);
}

/// The handle of registered memory comes to the transport with the bytes: at once, or when their turn has come.
TEST_F(FurtherTransportTest, RegisteredMemoryComesWithItsHandle) {
  auto data = pattern(5000);
  std::vector<std::byte> back(5000);
  int region = 0;
  fabric.registered.insert(&region);
  a.handle = &region;
  ASSERT_EQ(a.put(data, 0), Status::ok);
  ASSERT_EQ(a.put(data, 8192, true), Status::ok) << "it has to wait";
  ASSERT_EQ(a.get(back, 0, true), Status::ok) << "likewise";
  pass();
  ASSERT_EQ(End::take(a.done).size(), 3u);
  EXPECT_EQ(fabric.registered_uses, 3u);
  EXPECT_EQ(fabric.registrations, 0u);
  ASSERT_EQ(b.receive(back), Status::ok);
  ASSERT_EQ(a.send(data), Status::ok);
  pass();
  ASSERT_EQ(End::take(a.done).size(), 1u);
  EXPECT_GT(fabric.registered_uses, 3u) << "a message has it as well";
  a.handle = nullptr;
  ASSERT_EQ(a.get(back, 0), Status::ok);
  pass();
  ASSERT_EQ(End::take(a.done).size(), 1u);
  EXPECT_EQ(fabric.registrations, 1u);
}

}  // namespace
}  // namespace cluster::test
