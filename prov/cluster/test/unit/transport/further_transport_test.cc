// A third transport is one folder and one factory in EngineParts::further_transports: all operations work
// over it, although its accesses to remote memory end late and in any order. Nothing that an engine owes to
// its peers and callers needs a network.
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <stdexcept>

#include "engine/engine.h"
#include "support/completions.h"
#include "support/dummy_transport.h"
#include "support/node.h"
#include "support/quiet_local.h"

namespace cluster::test {
namespace {

using protocol::Completion;

/// A host with one peer, whose ring stays empty.
class ListenerOfAQuietPeer final : public QuietListener {
 public:
  void accept(std::vector<std::unique_ptr<shm::Inbox>>& arrivals) override {
    if (!std::exchange(came_, true)) arrivals.push_back(std::make_unique<Empty>());
  }

 private:
  struct Empty final : QuietInbox {
    Empty() : QuietInbox(kUnknownSource) { settle(word, 0); }
    std::uint32_t word = 0;
  };
  bool came_ = false;
};

bool is_readable(int descriptor) {
  pollfd one{descriptor, POLLIN, 0};
  return poll(&one, 1, 0) == 1;
}

class FurtherTransportTest : public testing::Test {
 protected:
  struct End {
    End(FurtherTransportTest& test, const SocketAddress& name, const SocketAddress& peer, std::uint64_t epoch,
        std::unique_ptr<shm::LocalListener> listener = nullptr)
        : fabric(test.fabric), random(epoch), memory(kMemory) {
      engine::EngineParts parts{.environment = {test.clock, random, log, counters},
                                .settings = node_settings(),
                                .name = name,
                                .epoch = epoch,
                                .link = nullptr,
                                .local_listener = std::move(listener),
                                .resources = nullptr,
                                .memory = test.registered};
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
    Status send(ConstBytes bytes, std::uint64_t to = 0) {
      return engine->send({.slices = {&bytes, 1},
                           .handles = handle != nullptr ? &handle : nullptr,
                           .length = bytes.size(),
                           .to = to});
    }
    Status receive(Bytes bytes, std::uint64_t from = protocol::kAddrUnspec) {
      return engine->receive({.slices = {&bytes, 1}, .from = from, .ignore = ~std::uint64_t{0}});
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
  std::shared_ptr<carrier::RegisteredMemory> registered =
      std::make_shared<carrier::RegisteredMemory>();  ///< in the domain of both ends
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
    ASSERT_EQ(take(a.done).size(), 1u) << size;
    ASSERT_EQ(take(b.received).size(), 1u) << size;
    EXPECT_EQ(got, data);
  }
  EXPECT_STREQ(a.engine->carrier_name_of(0), "dummy");
}

TEST_F(FurtherTransportTest, PutsAndGetsEndLateInAnyOrder) {
  const auto data = pattern(300000);
  std::vector<std::vector<std::byte>> back(40, std::vector<std::byte>(1000));
  ASSERT_EQ(a.put(data, 64), Status::ok);
  EXPECT_TRUE(take(a.done).empty()) << "the call returns before it is over";
  pass();
  ASSERT_EQ(take(a.done).size(), 1u);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), b.memory.begin() + 64));
  for (std::size_t i = 0; i < back.size(); ++i) ASSERT_EQ(a.get(back[i], 64 + i * 1000), Status::ok);
  pass(2000);
  ASSERT_EQ(take(a.done).size(), back.size()) << "those that the transport cannot take, the target serves";
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
  const auto done = take(a.done);
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
  EXPECT_TRUE(take(b.received).empty());
  fabric.stalled = false;
  pass();
  EXPECT_EQ(take(b.received).size(), 1u);
  EXPECT_EQ(take(a.done).size(), 2u);
}

TEST_F(FurtherTransportTest, AFenceWaitsForWhatIsPending) {
  const auto one = pattern(8), two = pattern(8, 2);
  for (int i = 0; i < 20; ++i) {
    std::vector<std::byte> back(8);
    ASSERT_EQ(a.put(one, 0), Status::ok);
    ASSERT_EQ(a.put(two, 0, true), Status::ok);
    ASSERT_EQ(a.get(back, 0, true), Status::ok);
    pass();
    ASSERT_EQ(take(a.done).size(), 3u);
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
    ASSERT_EQ(take(a.done).size(), 3u);
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
  EXPECT_EQ(take(a.done).size(), 2u);
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
  const auto done = take(a.done);
  ASSERT_EQ(done.size(), 3u);
  for (const Completion& each : done) EXPECT_EQ(each.status, Status::ended);
  ASSERT_EQ(a.put(data, 0), Status::ok);
  EXPECT_EQ(take(a.done).size(), 1u) << "fails at once";
}

TEST_F(FurtherTransportTest, ALostPeerMayComeBack) {
  ASSERT_EQ(a.send(pattern(100000)), Status::ok) << "the receiver never pulls it";
  pass();
  b.transport->unplug();
  pass();
  ASSERT_EQ(take(a.done).size(), 1u);
  b.transport->plug();
  ASSERT_EQ(a.send(pattern(8)), Status::ok);
  pass();
  const auto again = take(a.done);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].status, Status::ok);
}

/// A region that is registered as long as this object lives.
struct Registered {
  Registered(carrier::RegisteredMemory& all, void* handle, Bytes bytes)
      : memory(all), region{.handle = handle, .base = bytes.data(), .length = bytes.size()} {
    memory.add(region);
  }
  ~Registered() { memory.remove(region); }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

  carrier::RegisteredMemory& memory;
  carrier::RegisteredRegion region;
};

/// The handle of registered memory comes to the transport with the bytes: at once, or when their turn has
/// come.
TEST_F(FurtherTransportTest, RegisteredMemoryComesWithItsHandle) {
  std::vector<std::byte> memory = pattern(10000);
  const Bytes data = Bytes(memory).first(5000), back = Bytes(memory).last(5000);
  int object = 0;
  const Registered region(*registered, &object, memory);
  a.handle = &object;
  ASSERT_EQ(a.put(data, 0), Status::ok);
  ASSERT_EQ(a.put(data, 8192, true), Status::ok) << "it has to wait";
  ASSERT_EQ(a.get(back, 0, true), Status::ok) << "likewise";
  pass();
  ASSERT_EQ(take(a.done).size(), 3u);
  EXPECT_EQ(fabric.registered_uses, 3u);
  EXPECT_EQ(fabric.registrations, 0u);
  ASSERT_EQ(b.receive(back), Status::ok);
  ASSERT_EQ(a.send(data), Status::ok);
  pass();
  ASSERT_EQ(take(a.done).size(), 1u);
  EXPECT_GT(fabric.registered_uses, 3u) << "a message has it as well";
  a.handle = nullptr;
  ASSERT_EQ(a.get(back, 0), Status::ok);
  pass();
  ASSERT_EQ(take(a.done).size(), 1u);
  EXPECT_EQ(fabric.registrations, 1u);
  EXPECT_EQ(fabric.refused_handles, 0u);
}

/// The allocator may give the object of a closed region to the next one.
TEST_F(FurtherTransportTest, AClosedRegionIsNotTakenForALaterOneWithItsHandle) {
  auto old = pattern(64), young = pattern(64, 2);
  int object = 0;
  a.handle = &object;
  ASSERT_EQ(a.put(old, 0), Status::ok);
  EXPECT_EQ(fabric.refused_handles, 1u) << "nobody has registered it";
  {
    const Registered region(*registered, &object, old);
    ASSERT_EQ(a.put(old, 0), Status::ok);
    EXPECT_EQ(fabric.registered_uses, 1u);
  }
  ASSERT_EQ(a.put(old, 0), Status::ok);
  EXPECT_EQ(fabric.refused_handles, 2u) << "it is closed";
  const Registered region(*registered, &object, young);
  ASSERT_EQ(a.put(young, 0), Status::ok);
  EXPECT_EQ(fabric.registered_uses, 2u);
  ASSERT_EQ(a.put(old, 0), Status::ok);
  EXPECT_EQ(fabric.refused_handles, 3u) << "the handle is known, for other memory";
  pass();
  EXPECT_EQ(take(a.done).size(), 5u) << "each of them is done, one way or the other";
}

TEST_F(FurtherTransportTest, AnEndpointThatOpensLaterKnowsTheRegionsThatExist) {
  auto data = pattern(64);
  int object = 0;
  Registered region(*registered, &object, data);
  {
    End late(*this, node_name(4), kB, 3000);
    late.handle = &object;
    ASSERT_EQ(late.put(data, 0), Status::ok);
    EXPECT_EQ(fabric.registered_uses, 1u);
  }
  const Registered after(*registered, &data, data);  // the end that has gone is not told
}

TEST_F(FurtherTransportTest, AReceiveFromAnAbsentPeerEnds) {
  b.transport->unplug();
  std::vector<std::byte> got(8);
  ASSERT_EQ(a.receive(got, 0), Status::ok);
  EXPECT_LT(a.engine->next_deadline(), kNever) << "somebody who sleeps has to wake for it";
  for (int i = 0; i < 30; ++i) {
    clock.advance(100ms);
    a.engine->try_poll();
    if (i == 3) {
      EXPECT_NE(a.engine->stats()->operations.at(0).noted, Time{}) << "it has a date";
    }
  }
  const auto ended = take(a.received);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].status, Status::unreachable);
  ASSERT_FALSE(a.log.lines.empty());
  for (const std::string& line : a.log.lines)
    EXPECT_EQ(line.find("UDP"), std::string::npos) << "no network is involved: " << line;
  EXPECT_NE(a.log.lines[0].find("this endpoint does not use it; no network link"), std::string::npos);
  EXPECT_NE(a.log.lines[0].find("the dummy fabric has no such end"), std::string::npos) << a.log.lines[0];
}

/// Nobody dates these pulls, so a budget that finds its size by dates would stay as small as it begins.
TEST_F(FurtherTransportTest, PullsHaveABudgetThatNeedsNoDates) {
  const auto data = pattern(1 << 20);
  std::vector<std::byte> got(data.size());
  ASSERT_EQ(b.receive(got), Status::ok);
  ASSERT_EQ(a.send(data), Status::ok);
  pass(4000);
  ASSERT_EQ(take(b.received).size(), 1u);
  EXPECT_LE(fabric.pulls, 4u);
}

/// Beside a peer in shared memory most turns are calm, and read nothing but rings.
TEST_F(FurtherTransportTest, NoTurnSkipsATransportThatIsInUse) {
  End c(*this, node_name(5), kB, 4000, std::make_unique<ListenerOfAQuietPeer>());
  b.book.insert(node_name(5));
  std::vector<std::byte> got(8);
  const auto data = pattern(8);
  for (int i = 0; i < 2000; ++i) {
    clock.advance(20ns);
    c.engine->try_poll();
  }
  ASSERT_EQ(c.send(data), Status::ok);
  pass();
  for (int i = 0; i < 100; ++i) c.engine->try_poll();
  ASSERT_EQ(take(c.done).size(), 1u);
  ASSERT_EQ(c.receive(got), Status::ok);
  ASSERT_EQ(b.send(data, 1), Status::ok);
  c.engine->try_poll();
  EXPECT_EQ(take(c.received).size(), 1u);
}

TEST_F(FurtherTransportTest, AnAccessWhoseEndIsAnnouncedWakesNobodyBefore) {
  fabric.stalled = true;
  const auto data = pattern(8);
  ASSERT_EQ(a.put(data, 0), Status::ok);
  ASSERT_TRUE(a.engine->arm());
  EXPECT_FALSE(is_readable(a.engine->descriptor()));
  ASSERT_EQ(b.send(data), Status::ok);
  EXPECT_TRUE(is_readable(a.engine->descriptor()));
}

TEST_F(FurtherTransportTest, MoreTransportsThanAPeerHasPlacesForAreRefused) {
  engine::EngineParts parts{.environment = {clock, a.random, a.log, a.counters},
                            .settings = node_settings(),
                            .name = node_name(6),
                            .link = nullptr,
                            .local_listener = nullptr,
                            .resources = nullptr};
  for (std::size_t i = 0; i < transport::Peer::kTransportsMax; ++i) {
    parts.further_transports.emplace_back([this](const transport::TransportContext& context) {
      return std::make_unique<DummyTransport>(context, fabric);
    });
  }
  EXPECT_THROW(engine::Engine{std::move(parts)}, std::length_error) << "itself is one more";
}

}  // namespace
}  // namespace cluster::test
