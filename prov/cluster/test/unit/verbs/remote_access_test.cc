// Long remote writes and reads for which a device carries the bytes. The target decides what may be accessed,
// and a region that is closed is left alone, whatever the devices do.
#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "support/device_nodes.h"

namespace cluster::test {
namespace {

using protocol::RmaIov;

class RemoteDeviceTest : public DeviceTest {
 protected:
  static constexpr std::uint64_t kKey = 9;
  static constexpr std::uint64_t kStart = 5000;  ///< the address by which peers know the first byte
  static constexpr std::size_t kMargin = 64;

  void SetUp() override { begin(1000); }
  void TearDown() override { end(); }
  void end() {
    a = nullptr;
    b = nullptr;
  }
  /// `a` is the target of all accesses.
  void begin(std::uint64_t epoch) {
    end();
    also.bindings = {.remote_access = {.writes = &writes, .reads = &reads}, .regions = &regions};
    a = node(kA, kB, epoch);
    also.bindings = {};
    b = node(kB, kA, epoch + 1);
    memory = pattern(kLong + 2 * kMargin, 77);
    untouched = memory;
    regions.remove(kKey);
    expose(true, true);
  }
  void expose(bool readable, bool writable) {
    ASSERT_TRUE(regions.add(kKey, {.base = memory.data() + kMargin,
                                   .start = kStart,
                                   .length = kLong,
                                   .readable = readable,
                                   .writable = writable}));
  }

  Status begin_write(const std::vector<std::byte>& bytes, std::span<const RmaIov> ranges, bool data = false) {
    const ConstBytes slice = bytes;
    protocol::WriteOp op;
    op.remote = ranges;
    op.slices = {&slice, 1};
    op.length = bytes.size();
    op.data = 4711;
    op.has_data = data;
    return b->engine.write(op);
  }
  Status begin_read(std::vector<std::byte>& into, std::span<const RmaIov> ranges) {
    const Bytes slice = into;
    protocol::ReadOp op;
    op.remote = ranges;
    op.slices = {&slice, 1};
    op.length = into.size();
    return b->engine.read(op);
  }
  /// Waits for the end of an operation of `b`.
  Completion outcome() {
    std::vector<Completion> ends;
    pass_until([&] { return !(ends = take(b->sent)).empty(); }, *a, *b);
    EXPECT_EQ(ends.size(), 1u);
    return ends.empty() ? Completion{} : ends[0];
  }
  /// Writes the whole region.
  void put(unsigned seed) {
    const std::vector<std::byte> bytes = pattern(kLong, seed);
    const RmaIov range{kStart, kKey, bytes.size()};
    ASSERT_EQ(begin_write(bytes, {&range, 1}), Status::ok);
    EXPECT_EQ(outcome().status, Status::ok);
    std::copy(bytes.begin(), bytes.end(), untouched.begin() + kMargin);
    EXPECT_TRUE(memory == untouched);
    EXPECT_FALSE(fabric.knows(memory));
    EXPECT_FALSE(fabric.knows(bytes));
  }
  /// Reads the whole region.
  void get() {
    std::vector<std::byte> into(kLong);
    const RmaIov range{kStart, kKey, into.size()};
    ASSERT_EQ(begin_read(into, {&range, 1}), Status::ok);
    EXPECT_EQ(outcome().status, Status::ok);
    EXPECT_TRUE(std::equal(into.begin(), into.end(), memory.begin() + kMargin));
    EXPECT_FALSE(fabric.knows(into));
    pass(*a, *b);
    EXPECT_FALSE(fabric.knows(memory)) << "the grant has outlived the operation";
  }
  /// The first long access makes both sides connect.
  void connect_for_access() {
    put(1);
    ASSERT_EQ(a->counters().device_puts, 0u);
    pass(*a, *b);
  }
  /// A break of the queue pair makes an endpoint wait before it tries again.
  void recover() {
    clock.advance(5s);
    put(100);
    pass(*a, *b);
  }

  std::vector<std::byte> memory, untouched;
  protocol::RegionTable regions;
  protocol::Counter writes, reads;
};

TEST_F(RemoteDeviceTest, TheTargetsDeviceReadsLongWrites) {
  connect_for_access();
  const std::uint64_t frames = b->counters().frames_sent;
  for (unsigned seed = 2; seed < 7; ++seed) put(seed);
  EXPECT_EQ(a->counters().device_puts, 5u);
  EXPECT_EQ(a->counters().bytes_read, 5 * kLong);
  EXPECT_LT(b->counters().frames_sent - frames, 100u) << "the bytes travel in frames";
  EXPECT_EQ(writes.value(), 6u);
  EXPECT_EQ(fabric.misuses, 0u);
  EXPECT_EQ(a->counters().refused_segment + b->counters().refused_segment, 0u);
}

TEST_F(RemoteDeviceTest, TheInitiatorsDeviceReadsLongReads) {
  connect_for_access();
  const std::uint64_t frames = a->counters().frames_sent;
  for (int i = 0; i < 5; ++i) get();
  EXPECT_EQ(b->counters().device_gets, 5u);
  EXPECT_LT(a->counters().frames_sent - frames, 100u) << "the bytes travel in frames";
  EXPECT_EQ(reads.value(), 5u) << "each read counts once";
  EXPECT_EQ(fabric.misuses, 0u);
  EXPECT_EQ(a->counters().refused_segment + b->counters().refused_segment, 0u);
}

TEST_F(RemoteDeviceTest, AReadAlsoMakesBothSidesConnect) {
  b->send();  // so that there is a session
  a->receive();
  pass(*a, *b);
  take(b->sent);
  get();
  EXPECT_EQ(b->counters().device_gets, 0u);
  get();
  EXPECT_EQ(b->counters().device_gets, 1u);
  EXPECT_EQ(reads.value(), 2u);
}

TEST_F(RemoteDeviceTest, ShortAccessesNeedNoDevice) {
  connect_for_access();
  std::vector<std::byte> bytes = pattern(20'000, 3);
  const RmaIov range{kStart, kKey, bytes.size()};
  ASSERT_EQ(begin_write(bytes, {&range, 1}), Status::ok);
  EXPECT_EQ(outcome().status, Status::ok);
  ASSERT_EQ(begin_read(bytes, {&range, 1}), Status::ok);
  EXPECT_EQ(outcome().status, Status::ok);
  EXPECT_EQ(fabric.reads, 0u);
}

TEST_F(RemoteDeviceTest, DataComesOnceAndAfterTheBytes) {
  connect_for_access();
  const std::vector<std::byte> bytes = pattern(kLong, 5);
  const RmaIov range{kStart, kKey, kLong};
  ASSERT_EQ(begin_write(bytes, {&range, 1}, true), Status::ok);
  std::vector<Completion> data;
  pass_until([&] { return !(data = take(a->received)).empty(); }, *a, *b);
  ASSERT_EQ(data.size(), 1u);
  EXPECT_EQ(data[0].data, 4711u);
  EXPECT_EQ(data[0].length, kLong);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), memory.begin() + kMargin));
  EXPECT_EQ(outcome().status, Status::ok);
  pass(*a, *b);
  EXPECT_TRUE(take(a->received).empty());
  EXPECT_EQ(a->counters().device_puts, 1u);
}

/// A long range, a short one, and another long one.
TEST_F(RemoteDeviceTest, SeveralRangesAreOneOperation) {
  connect_for_access();
  const std::array<RmaIov, 3> ranges{
      {{kStart, kKey, 1'000'000}, {kStart + 1'200'000, kKey, 100}, {kStart + 1'300'000, kKey, 900'000}}};
  const std::vector<std::byte> bytes = pattern(1'900'100, 6);
  ASSERT_EQ(begin_write(bytes, ranges, true), Status::ok);
  EXPECT_EQ(outcome().status, Status::ok);
  EXPECT_EQ(writes.value(), 2u);
  EXPECT_EQ(take(a->received).size(), 1u);
  EXPECT_EQ(a->counters().device_puts, 2u);
  std::size_t from = 0;
  for (const RmaIov& range : ranges) {
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(from), range.length,
                untouched.begin() + static_cast<std::ptrdiff_t>(kMargin + range.address - kStart));
    from += range.length;
  }
  EXPECT_TRUE(memory == untouched);

  std::vector<std::byte> into(bytes.size());
  ASSERT_EQ(begin_read(into, ranges), Status::ok);
  EXPECT_EQ(outcome().status, Status::ok);
  EXPECT_TRUE(into == bytes);
  pass(*a, *b);
  EXPECT_EQ(reads.value(), 1u);
  EXPECT_EQ(b->counters().device_gets, 2u);
}

TEST_F(RemoteDeviceTest, LocalBuffersOfSeveralPieces) {
  connect_for_access();
  const std::vector<std::byte> bytes = pattern(kLong, 19);
  const std::array<ConstBytes, 3> slices{ConstBytes(bytes).first(50'001),
                                         ConstBytes(bytes).subspan(50'001, 1'500'000),
                                         ConstBytes(bytes).subspan(1'550'001)};
  const RmaIov range{kStart, kKey, kLong};
  protocol::WriteOp write;
  write.remote = {&range, 1};
  write.slices = slices;
  write.length = kLong;
  ASSERT_EQ(b->engine.write(write), Status::ok);
  EXPECT_EQ(outcome().status, Status::ok);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), memory.begin() + kMargin));
  EXPECT_EQ(a->counters().device_puts, 1u);
  EXPECT_EQ(a->counters().bytes_read, kLong);
  EXPECT_EQ(writes.value(), 2u);

  std::vector<std::byte> into(kLong);
  const std::array<Bytes, 2> targets{Bytes(into).first(1'200'003), Bytes(into).subspan(1'200'003)};
  protocol::ReadOp read;
  read.remote = {&range, 1};
  read.slices = targets;
  read.length = kLong;
  ASSERT_EQ(b->engine.read(read), Status::ok);
  EXPECT_EQ(outcome().status, Status::ok);
  EXPECT_TRUE(into == bytes);
  pass(*a, *b);
  EXPECT_EQ(b->counters().device_gets, 1u);
  EXPECT_EQ(reads.value(), 1u) << "two grants, one read";
  EXPECT_FALSE(fabric.knows(into) || fabric.knows(bytes) || fabric.knows(memory));
}

/// What a device has read of the pieces before it fails does not travel again.
TEST_F(RemoteDeviceTest, AFailureInTheSecondPieceCostsNoByte) {
  connect_for_access();
  const std::vector<std::byte> bytes = pattern(kLong, 20);
  const std::array<ConstBytes, 2> slices{ConstBytes(bytes).first(1'500'000),
                                         ConstBytes(bytes).subspan(1'500'000)};
  const RmaIov range{kStart, kKey, kLong};
  protocol::WriteOp write;
  write.remote = {&range, 1};
  write.slices = slices;
  write.length = kLong;
  fabric.fails_at = fabric.reads + 3;  // 1 MiB and the rest of the first piece, then 1 MiB and the rest
  ASSERT_EQ(b->engine.write(write), Status::ok);
  EXPECT_EQ(outcome().status, Status::ok);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), memory.begin() + kMargin));
  EXPECT_EQ(a->counters().bytes_read, 1'500'000u + (1 << 20));
  EXPECT_EQ(a->counters().device_reads_failed, 1u);
}

TEST_F(RemoteDeviceTest, AMessageComesAfterTheLongWriteBeforeIt) {
  connect_for_access();
  const std::vector<std::byte> bytes = pattern(kLong, 8);
  const RmaIov range{kStart, kKey, kLong};
  ASSERT_EQ(begin_write(bytes, {&range, 1}), Status::ok);
  b->send();
  a->receive();
  pass_until([&] { return !take(a->received).empty(); }, *a, *b);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), memory.begin() + kMargin));
  EXPECT_EQ(a->counters().device_puts, 1u);
}

TEST_F(RemoteDeviceTest, WhatIsNotAllowedIsRefusedAndChangesNothing) {
  connect_for_access();
  std::vector<std::byte> bytes = pattern(kLong, 9);
  const RmaIov wrong_key{kStart, kKey + 1, kLong};
  const RmaIov too_far{kStart + 1, kKey, kLong};
  const RmaIov too_early{kStart - 1, kKey, kLong};
  const auto refused = [&](const RmaIov& range, bool write, bool read) {
    if (write) {
      ASSERT_EQ(begin_write(bytes, {&range, 1}), Status::ok);
      EXPECT_EQ(outcome().status, Status::access);
    }
    if (read) {
      ASSERT_EQ(begin_read(bytes, {&range, 1}), Status::ok);
      EXPECT_EQ(outcome().status, Status::access);
    }
  };
  for (const RmaIov& range : {wrong_key, too_far, too_early}) refused(range, true, true);
  const RmaIov whole{kStart, kKey, kLong};
  regions.remove(kKey);
  refused(whole, true, true);
  expose(true, false);
  refused(whole, true, false);
  regions.remove(kKey);
  expose(false, true);
  refused(whole, false, true);
  EXPECT_TRUE(memory == untouched);
  EXPECT_EQ(fabric.reads, 0u);
  EXPECT_EQ(writes.value() + reads.value(), 1u);
}

TEST_F(RemoteDeviceTest, WhatADeviceRefusesTravelsInFrames) {
  connect_for_access();
  for (bool FakeDeviceFabric::*const able :
       {&FakeDeviceFabric::takes_read, &FakeDeviceFabric::takes_written}) {
    fabric.*able = false;
    put(10);
    get();
    fabric.*able = true;
  }
  EXPECT_EQ(a->counters().device_puts + b->counters().device_gets, 0u);
  put(11);
  get();
  EXPECT_EQ(a->counters().device_puts, 1u);
  EXPECT_EQ(b->counters().device_gets, 1u);
  EXPECT_EQ(reads.value(), 3u);
  EXPECT_EQ(writes.value(), 4u);
}

TEST_F(RemoteDeviceTest, AQueuePairThatBreaksCostsNoByte) {
  std::uint64_t epoch = 10'000;
  for (std::size_t FakeDeviceFabric::*const fault :
       {&FakeDeviceFabric::fails_at, &FakeDeviceFabric::refused_at, &FakeDeviceFabric::lies_at}) {
    fabric.exact = fault != &FakeDeviceFabric::lies_at;
    for (const std::size_t piece : {0u, 1u, 2u}) {
      begin(epoch += 10);
      const std::uint64_t written = writes.value(), read = reads.value();
      connect_for_access();
      fabric.*fault = fabric.reads + piece;
      put(12);
      EXPECT_EQ(a->counters().device_reads_failed, 1u);
      EXPECT_EQ(a->counters().device_puts, 0u);
      recover();
      fabric.*fault = fabric.reads + piece;
      get();
      EXPECT_EQ(b->counters().device_reads_failed, 1u);
      EXPECT_EQ(b->counters().device_gets, 0u);
      recover();
      get();
      EXPECT_EQ(b->counters().device_gets, 1u);
      pass(*a, *b);
      EXPECT_EQ(writes.value(), written + 4);
      EXPECT_EQ(reads.value(), read + 2) << "a read that began again counts once";
      fabric.*fault = FakeDeviceFabric::kNever;
    }
  }
}

TEST_F(RemoteDeviceTest, ADeviceThatFallsSilentCostsLessThanASecond) {
  connect_for_access();
  fabric.silent = true;
  Time before = clock.now();
  put(13);
  EXPECT_LE(clock.now() - before, 1s);
  fabric.silent = false;
  recover();
  fabric.silent = true;
  before = clock.now();
  get();
  EXPECT_LE(clock.now() - before, 1s);
}

TEST_F(RemoteDeviceTest, ARegionThatIsClosedWhileADeviceWritesToItIsLeftAlone) {
  connect_for_access();
  const std::vector<std::byte> bytes = pattern(kLong, 14);
  const RmaIov range{kStart, kKey, kLong};
  fabric.silent = true;
  ASSERT_EQ(begin_write(bytes, {&range, 1}, true), Status::ok);
  pass_until([&] { return fabric.knows(memory); }, *a, *b);
  EXPECT_TRUE(regions.remove(kKey));
  EXPECT_FALSE(fabric.knows(memory)) << "the device may still write";
  const std::vector<std::byte> now = memory;
  fabric.silent = false;
  EXPECT_EQ(outcome().status, Status::access);
  pass(*a, *b);
  EXPECT_TRUE(memory == now);
  EXPECT_TRUE(take(a->received).empty()) << "data of a write that has failed";
  EXPECT_FALSE(fabric.knows(bytes));
  expose(true, true);
  recover();
  put(15);
  EXPECT_EQ(a->counters().device_puts, 1u);
}

TEST_F(RemoteDeviceTest, ARegionThatIsClosedWhileADeviceReadsItIsLeftAlone) {
  connect_for_access();
  std::vector<std::byte> into(kLong);
  const RmaIov range{kStart, kKey, kLong};
  fabric.silent = true;
  ASSERT_EQ(begin_read(into, {&range, 1}), Status::ok);
  pass_until([&] { return fabric.knows(memory) && fabric.knows(into); }, *a, *b);
  EXPECT_TRUE(regions.remove(kKey));
  EXPECT_FALSE(fabric.knows(memory)) << "the peer's device may still read";
  fabric.silent = false;
  EXPECT_EQ(outcome().status, Status::access);
  EXPECT_FALSE(fabric.knows(into));
  EXPECT_EQ(reads.value(), 0u);
}

/// The region that takes the place of a closed one may have its key.
TEST_F(RemoteDeviceTest, ARegionWithTheKeyOfAClosedOneIsAnotherRegion) {
  connect_for_access();
  std::vector<std::byte> into(kLong);
  const std::vector<std::byte> bytes = pattern(kLong, 16);
  const RmaIov range{kStart, kKey, kLong};
  fabric.silent = true;
  ASSERT_EQ(begin_read(into, {&range, 1}), Status::ok);
  pass_until([&] { return fabric.knows(memory) && fabric.knows(into); }, *a, *b);
  std::vector<std::byte> others = pattern(kLong, 17);
  EXPECT_TRUE(regions.remove(kKey));
  ASSERT_TRUE(regions.add(kKey, {.base = others.data(), .start = kStart, .length = kLong, .readable = true}));
  fabric.silent = false;
  EXPECT_EQ(outcome().status, Status::ok);
  EXPECT_TRUE(into == others) << "this is what the key names when the read begins anew";
  EXPECT_EQ(reads.value(), 1u);
  EXPECT_FALSE(fabric.knows(others));
  EXPECT_TRUE(regions.remove(kKey));
}

TEST_F(RemoteDeviceTest, AnEndpointThatClosesReleasesItsRegions) {
  connect_for_access();
  std::vector<std::byte> into(kLong);
  const std::vector<std::byte> bytes = pattern(kLong, 18);
  const RmaIov range{kStart, kKey, kLong};
  fabric.silent = true;
  ASSERT_EQ(begin_read(into, {&range, 1}), Status::ok);
  ASSERT_EQ(begin_write(bytes, {&range, 1}), Status::ok);
  pass_until([&] { return fabric.knows(bytes) && fabric.knows(into); }, *a, *b);
  a = nullptr;
  EXPECT_FALSE(fabric.knows(memory));
  EXPECT_TRUE(regions.remove(kKey));
  b = nullptr;
  EXPECT_FALSE(fabric.knows(bytes) || fabric.knows(into));
}

TEST_F(RemoteDeviceTest, ATargetForgetsWhatItHasGrantedToALostPeer) {
  connect_for_access();
  std::vector<std::byte> into(kLong);
  const RmaIov range{kStart, kKey, kLong};
  fabric.silent = true;
  ASSERT_EQ(begin_read(into, {&range, 1}), Status::ok);
  pass_until([&] { return fabric.knows(memory) && fabric.knows(into); }, *a, *b);
  b = nullptr;
  for (int i = 0; i < 20'000 && fabric.knows(memory); ++i) {
    clock.advance(1ms);
    a->engine.poll();
  }
  EXPECT_FALSE(fabric.knows(memory));
  EXPECT_EQ(reads.value(), 0u);
}

/// The target grants a peer a limited number of reads at a time.
TEST_F(RemoteDeviceTest, ManyReadsAtOnce) {
  connect_for_access();
  constexpr std::size_t kMany = 3 * protocol::kGrantsMax;
  constexpr std::size_t kSize = 40'000;
  std::vector<std::vector<std::byte>> into(kMany, std::vector<std::byte>(kSize));
  for (std::size_t i = 0; i < kMany; ++i) {
    const RmaIov range{kStart + i * 1000, kKey, kSize};
    ASSERT_EQ(begin_read(into[i], {&range, 1}), Status::ok);
  }
  std::size_t ended = 0;
  pass_until([&] { return (ended += take(b->sent).size()) == kMany; }, *a, *b);
  for (std::size_t i = 0; i < kMany; ++i) {
    EXPECT_TRUE(std::equal(into[i].begin(), into[i].end(),
                           memory.begin() + static_cast<std::ptrdiff_t>(kMargin + i * 1000)));
  }
  pass(*a, *b);
  EXPECT_FALSE(fabric.knows(memory));
  EXPECT_EQ(reads.value(), kMany);
  EXPECT_GE(b->counters().device_gets, protocol::kGrantsMax);
  EXPECT_LT(b->counters().device_gets, kMany);
}

}  // namespace
}  // namespace cluster::test
