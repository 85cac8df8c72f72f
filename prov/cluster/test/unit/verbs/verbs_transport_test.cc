// Long messages that devices read: they arrive intact and once, whatever the devices do.
#include "verbs/verbs_transport.h"

#include <gtest/gtest.h>

#include "support/device_nodes.h"

namespace cluster::test {
namespace {

using VerbsTransportTest = DeviceTest;
using protocol::Completion;

TEST_F(VerbsTransportTest, TheDeviceReadsLongMessages) {
  connect();
  const std::uint64_t frames = b->counters().frames_sent;
  for (unsigned seed = 3; seed < 8; ++seed) exchange(kLong + seed, seed);
  EXPECT_EQ(a->counters().device_reads, 6u);
  EXPECT_EQ(a->counters().bytes_read, kLong + 5 * kLong + 3 + 4 + 5 + 6 + 7);
  EXPECT_LT(b->counters().frames_sent - frames, 100u) << "the bytes travel in frames";
  exchange(1000, 9);
  EXPECT_EQ(a->counters().device_reads, 6u) << "a short message";
  EXPECT_EQ(fabric.created, 2u);
  EXPECT_EQ(fabric.misuses, 0u);
  EXPECT_EQ(a->counters().refused_segment + b->counters().refused_segment, 0u);
}

TEST_F(VerbsTransportTest, ReportsTheDevice) {
  EXPECT_TRUE(a->engine.stats()->devices.empty()) << "it is not open yet";
  connect();
  const engine::EndpointStats seen = *a->engine.stats();
  ASSERT_EQ(seen.devices.size(), 1u);
  EXPECT_EQ(seen.devices[0].name, "fake/1");
  EXPECT_EQ(seen.devices[0].queue_pairs, 1u);
  EXPECT_EQ(seen.devices[0].queue_pairs_max, places);
  EXPECT_EQ(a->logged("keeps no registrations"), 1u);
}

TEST_F(VerbsTransportTest, ManyMessagesAtOnce) {
  connect();
  std::vector<std::vector<std::byte>> sent, got(40);
  for (unsigned i = 0; i < got.size(); ++i) {
    sent.push_back(pattern(200'000 + i * 100'000, i));
    got[i].resize(sent[i].size());
    begin_receive(*a, got[i]);
    begin_send(*b, sent[i]);
  }
  std::size_t arrived = 0;
  pass_until([&] { return (arrived += take(a->received).size()) == got.size(); }, *a, *b);
  for (unsigned i = 0; i < got.size(); ++i) EXPECT_TRUE(got[i] == sent[i]) << i;
  EXPECT_EQ(a->counters().device_reads, 1 + got.size());
  EXPECT_EQ(fabric.misuses, 0u) << "too many reads at once";
}

TEST_F(VerbsTransportTest, BothSidesOfferAtOnce) {
  for (unsigned seed = 0; seed < 2; ++seed) exchange_both_ways(kLong, seed);
  EXPECT_EQ(a->counters().device_reads, 1u);
  EXPECT_EQ(b->counters().device_reads, 1u);
  EXPECT_EQ(fabric.created, 2u);
}

TEST_F(VerbsTransportTest, APeerWithoutADeviceLearnsNothingOfOurs) {
  a = nullptr;
  a = node(kA, kB, 3000);
  b = std::make_unique<Node>(network, kB, kA, 4000);
  for (unsigned seed = 0; seed < 3; ++seed) exchange(kLong, seed);
  EXPECT_EQ(a->counters().device_reads, 0u);
  EXPECT_EQ(fabric.opened, 0u);
  EXPECT_EQ(b->counters().refused_segment + b->counters().refused_malformed, 0u);
}

TEST_F(VerbsTransportTest, WhatADeviceRefusesTravelsInFrames) {
  for (bool FakeDeviceFabric::*const able :
       {&FakeDeviceFabric::opens, &FakeDeviceFabric::creates, &FakeDeviceFabric::connects}) {
    fabric.*able = false;
    for (unsigned seed = 0; seed < 3; ++seed) exchange(kLong, seed);
    EXPECT_EQ(a->counters().device_reads, 0u);
    fabric.*able = true;
    clock.advance(10s);
  }
  connect();
  std::uint64_t failed = 0;
  for (bool FakeDeviceFabric::*const able :
       {&FakeDeviceFabric::takes_read, &FakeDeviceFabric::takes_written}) {
    fabric.*able = false;
    exchange(kLong, 7);
    EXPECT_EQ(a->counters().device_reads_failed, ++failed);
    fabric.*able = true;
  }
  EXPECT_EQ(a->logged("cannot register memory"), 1u);
  EXPECT_EQ(b->logged("cannot register memory"), 1u);
  exchange(kLong, 8);
  EXPECT_EQ(a->counters().device_reads, 2u) << "the queue pair has not suffered";
}

TEST_F(VerbsTransportTest, BuffersOfSeveralPiecesAreReadPieceByPiece) {
  connect();
  const std::vector<std::byte> sent = pattern(kLong, 3);
  std::vector<std::byte> got(kLong);
  const std::array<ConstBytes, 2> slices{ConstBytes(sent).first(kLong / 3),
                                         ConstBytes(sent).subspan(kLong / 3)};
  const std::array<Bytes, 3> targets{Bytes(got).first(40'000), Bytes(got).subspan(40'000, kLong / 2),
                                     Bytes(got).subspan(40'000 + kLong / 2)};
  ASSERT_EQ(a->engine.receive({.slices = targets, .ignore = ~std::uint64_t{0}}), Status::ok);
  ASSERT_EQ(b->engine.send({.slices = slices, .length = kLong, .to = 0}), Status::ok);
  pass_until([&] { return !take(a->received).empty(); }, *a, *b);
  EXPECT_TRUE(got == sent);
  EXPECT_EQ(a->counters().device_reads, 2u);
  EXPECT_EQ(a->counters().bytes_read, 2 * kLong);
  pass(*a, *b);
  EXPECT_FALSE(fabric.knows(got) || fabric.knows(sent));
}

TEST_F(VerbsTransportTest, BehindAShortPieceTheRestTravelsInFrames) {
  connect();
  const std::vector<std::byte> sent = pattern(kLong, 4);
  std::vector<std::byte> got(kLong);
  const std::array<ConstBytes, 3> slices{ConstBytes(sent).first(kLong / 3),
                                         ConstBytes(sent).subspan(kLong / 3, 100),
                                         ConstBytes(sent).subspan(kLong / 3 + 100)};
  begin_receive(*a, got);
  ASSERT_EQ(b->engine.send({.slices = slices, .length = kLong, .to = 0}), Status::ok);
  pass_until([&] { return !take(a->received).empty(); }, *a, *b);
  EXPECT_TRUE(got == sent);
  EXPECT_EQ(a->counters().device_reads, 1u);
  EXPECT_EQ(a->counters().bytes_read, kLong + kLong / 3);
  EXPECT_EQ(a->counters().refused_segment + b->counters().refused_segment, 0u);
}

TEST_F(VerbsTransportTest, AQueuePairThatBreaksCostsNoMessage) {
  for (std::size_t FakeDeviceFabric::*const fault :
       {&FakeDeviceFabric::fails_at, &FakeDeviceFabric::refused_at}) {
    for (const std::size_t piece : {0u, 1u, 2u}) {
      a = nullptr;
      b = nullptr;
      a = node(kA, kB, 5000 + piece);
      b = node(kB, kA, 6000 + piece);
      connect();
      fabric.*fault = fabric.reads + piece;
      exchange(kLong, 3);
      EXPECT_EQ(a->counters().device_reads_failed, 1u);
      EXPECT_EQ(a->counters().bytes_read, kLong + piece * (1 << 20))
          << "what has arrived is not pulled again";
      exchange(kLong, 4);
      EXPECT_EQ(a->counters().device_reads, 1u) << "it must wait before it tries again";
      clock.advance(5s);
      exchange(kLong, 5);
      exchange(kLong, 6);
      EXPECT_EQ(a->counters().device_reads, 2u);
    }
  }
}

TEST_F(VerbsTransportTest, ADeviceThatReportsAFailedReadAsDoneCostsNoByte) {
  fabric.exact = false;
  constexpr std::size_t kPieces = (kLong + (128 << 10) - 1) / (128 << 10);
  for (const std::size_t piece : {std::size_t{0}, std::size_t{1}, kPieces / 2, kPieces - 2, kPieces - 1}) {
    a = nullptr;
    b = nullptr;
    a = node(kA, kB, 5000 + piece);
    b = node(kB, kA, 6000 + piece);
    connect();
    fabric.lies_at = fabric.reads + piece;
    exchange(kLong, 3);
    EXPECT_EQ(a->counters().device_reads_failed, 1u) << piece;
    EXPECT_EQ(a->counters().bytes_read, kLong) << "what no checksum confirms counts";
    EXPECT_EQ(a->logged("travel in frames again"), 1u);
    clock.advance(5s);
    exchange(kLong, 5);
    exchange(kLong, 6);
    EXPECT_EQ(a->counters().device_reads, 2u);
  }
  EXPECT_LE(fabric.most_at_once, 2u) << "the queues of the kernel overflow";
}

TEST_F(VerbsTransportTest, WhatASoftDeviceHasReadOfABrokenMessageDoesNotCount) {
  fabric.exact = false;
  connect();
  fabric.lies_at = fabric.reads + 3;
  fabric.fails_at = fabric.reads + 4;
  exchange(kLong, 3);
  EXPECT_EQ(a->counters().bytes_read, kLong);
}

TEST_F(VerbsTransportTest, ADeviceThatFallsSilentCostsLessThanASecond) {
  connect();
  fabric.silent = true;
  const Time before = clock.now();
  exchange(kLong, 3);
  EXPECT_LT(clock.now() - before, 1s);
  EXPECT_EQ(a->logged("its device does not answer"), 1u);
  fabric.silent = false;
  clock.advance(5s);
  exchange(kLong, 4);
  exchange(kLong, 5);
  EXPECT_EQ(a->counters().device_reads, 2u);
}

TEST_F(VerbsTransportTest, ADeviceThatIsRemovedIsGivenBackAndOpenedAgain) {
  connect();
  const std::size_t opened = fabric.opened;
  fabric.gone = true;
  exchange(kLong, 3);
  EXPECT_EQ(a->logged("fake/1 reads no more messages"), 1u);
  fabric.gone = false;
  clock.advance(10s);
  exchange(kLong, 4);
  exchange(kLong, 5);
  EXPECT_EQ(a->counters().device_reads, 2u);
  EXPECT_GT(fabric.opened, opened);
}

struct SeveralDevices : VerbsTransportTest {
  ~SeveralDevices() override {  // the nodes use the devices until they end
    a = nullptr;
    b = nullptr;
  }
  void begin(std::initializer_list<FakeDeviceFabric*> of_a, std::initializer_list<FakeDeviceFabric*> of_b) {
    a = nullptr;
    b = nullptr;
    a = node(kA, kB, 3000, of_a);
    b = node(kB, kA, 4000, of_b);
  }
  FakeDeviceFabric other{.subnet = std::byte{78}};
};

TEST_F(SeveralDevices, TheOfferedOneIsAnsweredByOneOfItsSubnet) {
  begin({&other}, {&fabric, &other});
  exchange(kLong, 1);
  exchange(kLong, 2);
  EXPECT_EQ(a->counters().device_reads, 1u);
  EXPECT_EQ(fabric.created, 0u);
}

TEST_F(SeveralDevices, TheNextOfferIsThatOfAnotherOne) {
  begin({&fabric, &other}, {&other});
  for (unsigned seed = 0; seed < 4; ++seed) {
    exchange(kLong, seed);
    clock.advance(5s);
  }
  EXPECT_GE(a->counters().device_reads, 1u);
  EXPECT_GE(fabric.created, 1u) << "it was offered, and no device of the peer reaches it";
  EXPECT_TRUE(fabric.pairs.empty());
}

TEST_F(SeveralDevices, OffersOfTwoSubnetsMeet) {
  begin({&fabric, &other}, {&other});
  for (unsigned seed = 0; seed < 2; ++seed) exchange_both_ways(kLong, seed);
  EXPECT_EQ(a->counters().device_reads + b->counters().device_reads, 2u);
  EXPECT_TRUE(fabric.pairs.empty());
}

TEST_F(SeveralDevices, AnotherOneTakesThePlaceOfOneThatIsLost) {
  begin({&fabric, &other}, {&fabric, &other});
  connect();
  EXPECT_EQ(other.created, 0u);
  fabric.gone = true;
  exchange(kLong, 3);
  clock.advance(5s);
  exchange(kLong, 4);
  exchange(kLong, 5);
  EXPECT_EQ(a->counters().device_reads, 2u);
  EXPECT_EQ(other.created, 2u);
  EXPECT_EQ(fabric.misuses + other.misuses, 0u);
}

TEST_F(SeveralDevices, NoneOfTheSameSubnetIsConnected) {
  begin({&fabric}, {&other});
  for (unsigned seed = 0; seed < 4; ++seed) {
    exchange(kLong, seed);
    clock.advance(5s);
  }
  EXPECT_EQ(a->counters().device_reads + a->counters().device_reads_failed, 0u);
  EXPECT_TRUE(fabric.pairs.empty() && other.pairs.empty());
}

TEST_F(VerbsTransportTest, NoDeviceWritesToABufferThatWasGivenBack) {
  connect();
  fabric.silent = true;
  const std::vector<std::byte> sent = pattern(kLong, 3);
  std::vector<std::byte> got(kLong);
  begin_receive(*a, got);
  begin_send(*b, sent);
  pass_until([&] { return fabric.knows(got) && fabric.knows(sent); }, *a, *b);
  b = nullptr;
  EXPECT_FALSE(fabric.knows(sent));
  std::vector<Completion> ends;
  for (int i = 0; i < 20'000 && ends.empty(); ++i) {
    clock.advance(1ms);
    a->engine.poll();
    ends = take(a->received);
  }
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_NE(ends[0].status, Status::ok);
  EXPECT_FALSE(fabric.knows(got));
}

TEST_F(VerbsTransportTest, AnEndpointThatClosesForgetsItsBuffers) {
  connect();
  fabric.silent = true;
  const std::vector<std::byte> sent = pattern(kLong, 3);
  std::vector<std::byte> got(kLong);
  begin_receive(*a, got);
  begin_send(*b, sent);
  pass_until([&] { return fabric.knows(got); }, *a, *b);
  a = nullptr;
  EXPECT_FALSE(fabric.knows(got));
}

TEST_F(VerbsTransportTest, TheQueuePairUsedLeastRecentlyIsClosedForTheNext) {
  a = nullptr;
  b = nullptr;
  places = 2;
  a = node(kA, kB, 7000);
  std::vector<std::unique_ptr<Node>> others;
  for (int i = 0; i < 3; ++i) {
    others.push_back(node(node_name(10 + i), kA, 8000 + static_cast<std::uint64_t>(i)));
    a->book.insert(node_name(10 + i));
  }
  const auto exchange_with = [&](Node& other, unsigned seed) {
    const std::vector<std::byte> sent = pattern(kLong, seed);
    std::vector<std::byte> got(kLong);
    begin_receive(*a, got);
    begin_send(other, sent);
    pass_until([&] { return !take(a->received).empty(); }, *a, *others[0], *others[1], *others[2]);
    EXPECT_TRUE(got == sent);
  };
  for (unsigned i = 0; i < 3; ++i) {
    exchange_with(*others[i], i);
    exchange_with(*others[i], i + 3);
    EXPECT_EQ(a->counters().device_reads, i + 1);
  }
  EXPECT_EQ(a->logged("other peers need a queue pair"), 1u);
  exchange_with(*others[1], 8);
  exchange_with(*others[2], 9);
  EXPECT_EQ(a->counters().device_reads, 5u);
  exchange_with(*others[0], 10);
  EXPECT_EQ(a->counters().device_reads, 5u) << "it has lost its queue pair";
}

}  // namespace
}  // namespace cluster::test
