// Atomic operations between two messengers: parts, answers, denials, a full carrier, loss of the peer, and
// order.
#include <gtest/gtest.h>

#include <numeric>

#include "protocol/atomic_arithmetic.h"
#include "protocol/region_table.h"
#include "support/messenger_pair.h"

namespace cluster::protocol {
namespace {

using wire::AtomicCode;
using wire::AtomicOp;
using wire::AtomicType;

class AtomicTest : public MessengerTest {
 protected:
  AtomicTest() : memory(kElements) {
    std::iota(memory.begin(), memory.end(), 1000u);
    regions.add(kKey, {bytes_of(memory), 0, kBytes, true, true, &reads, &writes});
    EndpointBindings bindings;
    bindings.tx_queue = bindings.rx_queue = &right.completions;
    bindings.regions = &regions;
    bindings.remote_access.writes = &remote_writes;
    bindings.remote_access.reads = &remote_reads;
    right.messenger.attach(bindings);
    attach({});
  }

  void attach(const Ordering& ordering) {
    EndpointBindings mine;
    mine.tx_queue = mine.rx_queue = &left.completions;
    mine.write_counter = &written;
    mine.read_counter = &read;
    mine.ordering = ordering;
    left.messenger.attach(mine);
  }

  template <typename V>
  static std::byte* bytes_of(std::vector<V>& values) {
    return reinterpret_cast<std::byte*>(values.data());
  }

  /// `count` elements from element `at` on; operands and comparands are those of the fixture.
  Status atomic(AtomicOp op, bool fetch, std::size_t at, std::size_t count, bool inject = false,
                std::uint64_t key = kKey) {
    AtomicRmaOp order;
    order.code = {op, AtomicType::uint64, fetch};
    const std::size_t size = count * sizeof(std::uint64_t);
    const ConstBytes operand[] = {{bytes_of(operands), size}};
    const ConstBytes compare[] = {{bytes_of(compares), size}};
    const Bytes result[] = {{bytes_of(results), size}};
    const RmaIov remote[] = {{at * sizeof(std::uint64_t), key, size}};
    if (order.code.operands() > 0) order.slices = operand;
    if (order.code.operands() > 1) order.compares = compare;
    if (fetch) order.results = result;
    order.remote = remote;
    order.length = size;
    order.context = this;
    order.inject = inject;
    return left.messenger.atomic(left.channel, order);
  }

  Completion outcome() { return MessengerTest::outcome(left); }

  static constexpr std::uint64_t kKey = 5;
  static constexpr std::size_t kElements = 1024;
  static constexpr std::size_t kBytes = kElements * sizeof(std::uint64_t);
  static constexpr std::size_t kMost = kAtomicMax / sizeof(std::uint64_t);
  RegionTable regions;
  Counter reads, writes, remote_writes, remote_reads, written, read;
  std::vector<std::uint64_t> memory;
  std::vector<std::uint64_t> operands = std::vector<std::uint64_t>(kElements, 7);
  std::vector<std::uint64_t> compares = std::vector<std::uint64_t>(kElements, 1003);
  std::vector<std::uint64_t> results = std::vector<std::uint64_t>(kElements, 0);
};

TEST_F(AtomicTest, EveryLengthWithAndWithoutAnAnswer) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{2}, std::size_t{16}, std::size_t{17}, kMost}) {
    for (const bool fetch : {false, true}) {
      SCOPED_TRACE(count);
      const auto before = memory;
      shuffle = true;
      ASSERT_EQ(atomic(AtomicOp::sum, fetch, 3, count), Status::ok);
      EXPECT_TRUE(left.take().empty()) << "complete before it is done";
      run();
      const Completion done = outcome();
      EXPECT_EQ(done.kind, fetch ? Completion::Kind::fetch : Completion::Kind::atomic);
      EXPECT_EQ(done.status, Status::ok);
      EXPECT_EQ(done.context, this);
      for (std::size_t i = 0; i < kElements; ++i) {
        const bool meant = i >= 3 && i < 3 + count;
        ASSERT_EQ(memory[i], before[i] + (meant ? 7 : 0)) << i;
        if (fetch && i < count) {
          ASSERT_EQ(results[i], before[3 + i]) << i;
        }
      }
    }
  }
  for (const Counter* counter : {&written, &read}) EXPECT_EQ(counter->value(), 5u) << "one tick an operation";
  for (const Counter* counter : {&writes, &remote_writes}) EXPECT_EQ(counter->value(), 10u);
  for (const Counter* counter : {&reads, &remote_reads})
    EXPECT_EQ(counter->value(), 0u) << "all of them write";
}

TEST_F(AtomicTest, SeveralRangesAreCountedOnce) {
  const ConstBytes operand[] = {{bytes_of(operands), 48}};
  const Bytes result[] = {{bytes_of(results), 48}};
  const RmaIov ranges[] = {{0, kKey, 16}, {64, kKey, 32}};
  for (const bool fetch : {false, true}) {
    AtomicRmaOp order;
    order.code = {AtomicOp::sum, AtomicType::uint64, fetch};
    order.slices = operand;
    if (fetch) order.results = result;
    order.remote = ranges;
    order.length = 48;
    ASSERT_EQ(left.messenger.atomic(left.channel, order), Status::ok);
    run();
    EXPECT_EQ(outcome().status, Status::ok);
  }
  for (const Counter* counter : {&writes, &remote_writes}) EXPECT_EQ(counter->value(), 2u);
  for (const Counter* counter : {&reads, &remote_reads}) EXPECT_EQ(counter->value(), 0u);
}

TEST_F(AtomicTest, ReadsAndCompares) {
  ASSERT_EQ(atomic(AtomicOp::read, true, 0, 40), Status::ok);
  run();
  outcome();
  for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(results[i], 1000 + i);
  EXPECT_EQ(remote_reads.value(), 1u);
  ASSERT_EQ(atomic(AtomicOp::cswap, true, 0, 40), Status::ok);
  run();
  outcome();
  for (std::size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(memory[i], i == 3 ? 7 : 1000 + i);
    EXPECT_EQ(results[i], 1000 + i);
  }
  EXPECT_EQ(remote_reads.value(), 1u);
  EXPECT_EQ(remote_writes.value(), 1u) << "whether it swapped or not";
}

TEST_F(AtomicTest, SeveralRangesAreOneOperation) {
  AtomicRmaOp order;
  order.code = {AtomicOp::sum, AtomicType::uint64, true};
  operands[1] = 9;
  const ConstBytes operand[] = {{bytes_of(operands), 8}, {bytes_of(operands) + 8, 16}};
  const Bytes result[] = {{bytes_of(results), 24}};
  const RmaIov remote[] = {{80, kKey, 16}, {0, kKey, 8}};
  order.slices = operand;
  order.results = result;
  order.remote = remote;
  order.length = 24;
  ASSERT_EQ(left.messenger.atomic(left.channel, order), Status::ok);
  run();
  outcome();
  EXPECT_EQ(memory[10], 1017u);
  EXPECT_EQ(memory[11], 1020u);
  EXPECT_EQ(memory[0], 1007u);
  EXPECT_EQ((std::vector<std::uint64_t>{results[0], results[1], results[2]}),
            (std::vector<std::uint64_t>{1010, 1011, 1000}));
}

TEST_F(AtomicTest, DeniedAccessFailsAtTheInitiatorAndChangesNothing) {
  regions.add(1, {bytes_of(memory), 0, kBytes, true, false, nullptr, nullptr});  // read only
  regions.add(2, {bytes_of(memory), 0, kBytes, false, true, nullptr, nullptr});  // write only
  const auto before = memory;
  const auto refused = [&](AtomicOp op, bool fetch, std::size_t at, std::size_t count, std::uint64_t key) {
    ASSERT_EQ(atomic(op, fetch, at, count, false, key), Status::ok);
    run();
    EXPECT_EQ(outcome().status, Status::access) << int(op) << " key " << key;
  };
  for (const std::size_t count : {std::size_t{1}, std::size_t{40}, kMost}) {
    refused(AtomicOp::sum, false, 0, count, 99);
    refused(AtomicOp::sum, false, 0, count, 1);
    refused(AtomicOp::sum, true, 0, count, 2);
    refused(AtomicOp::read, true, 0, count, 2);
    refused(AtomicOp::cswap, true, 0, count, 1);
    refused(AtomicOp::sum, false, kElements - count + 1, count, kKey);  // the last element only
  }
  EXPECT_EQ(memory, before);
  EXPECT_EQ(remote_writes.value() + remote_reads.value(), 0u);
  ASSERT_EQ(atomic(AtomicOp::read, true, 0, 1, false, 1), Status::ok);
  run();
  EXPECT_EQ(outcome().status, Status::ok);
}

TEST_F(AtomicTest, AfterARefusalTheRestIsNotSent) {
  left.carrier.capacity = 2;
  ASSERT_EQ(atomic(AtomicOp::sum, false, 0, kMost, false, 99), Status::ok);
  ASSERT_EQ(atomic(AtomicOp::sum, false, 0, 1), Status::ok);
  ASSERT_EQ(left.carrier.items.size(), 2u) << "the carrier takes no more of its parts";
  carry(left, right);
  EXPECT_TRUE(left.take().empty());
  carry(right, left);
  EXPECT_EQ(outcome().status, Status::access);
  left.messenger.pump();
  ASSERT_EQ(left.carrier.items.size(), 1u);
  EXPECT_EQ(left.carrier.items[0].segment.key, kKey) << "the next request follows";
  run();
  EXPECT_EQ(outcome().status, Status::ok);
  EXPECT_EQ(memory[0], 1007u);
  EXPECT_EQ(left.channel.rma.atomic_parts, 0u);
}

TEST_F(AtomicTest, OperationsThatATypeDoesNotHaveAreRefusedByTheTarget) {
  wire::Segment segment;
  segment.kind = wire::SegmentKind::atomic;
  segment.detail = AtomicCode{AtomicOp::bor, AtomicType::float64, false}.packed();
  segment.id = 77;
  segment.key = kKey;
  segment.total = segment.length = 8;
  const auto before = memory;
  right.messenger.arrive(right.channel, segment, {bytes_of(operands), 8});
  ASSERT_EQ(right.carrier.items.size(), 1u);
  EXPECT_EQ(right.carrier.items[0].segment.kind, wire::SegmentKind::failed);
  EXPECT_EQ(memory, before);
}

TEST_F(AtomicTest, InjectedOnesMayQueueAndAnswersWaitForSpace) {
  left.carrier.capacity = right.carrier.capacity = 0;
  ASSERT_EQ(atomic(AtomicOp::cswap, true, 3, 20, true), Status::ok);
  std::fill(operands.begin(), operands.end(), 0xBAD);
  std::fill(compares.begin(), compares.end(), 0xBAD);
  left.carrier.capacity = 2;
  for (int turn = 0; turn < 20; ++turn) {
    left.messenger.pump();
    carry(left, right);
  }
  EXPECT_EQ(memory[3], 7u);
  EXPECT_TRUE(left.take().empty());
  right.carrier.capacity = 1;
  run();
  EXPECT_EQ(outcome().status, Status::ok);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(results[i], 1003 + i);
}

TEST_F(AtomicTest, EachOfManyIsExecutedOnce) {
  settings.tx_requests_max = 100000;
  for (int i = 0; i < 60; ++i) ASSERT_EQ(atomic(AtomicOp::sum, true, 0, kMost), Status::ok);
  run();
  EXPECT_EQ(left.take().size(), 60u);
  EXPECT_EQ(memory[0], 1000u + 60 * 7);
  EXPECT_EQ(memory[kMost - 1], 1000u + kMost - 1 + 60 * 7);
}

TEST_F(AtomicTest, ALostPeerEndsThem) {
  ASSERT_EQ(atomic(AtomicOp::sum, true, 0, kMost), Status::ok);
  left.carrier.capacity = 0;
  ASSERT_EQ(atomic(AtomicOp::sum, false, 0, 1), Status::ok);
  left.messenger.fail(left.channel, Status::reset, true);
  const auto taken = left.take();
  ASSERT_EQ(taken.size(), 2u);
  for (const Completion& completion : taken) EXPECT_EQ(completion.status, Status::reset);
  EXPECT_FALSE(left.messenger.under_way());
  EXPECT_EQ(left.channel.rma.atomic_parts, 0u);
}

TEST_F(AtomicTest, UnrequestedAnswersAreRefused) {
  std::array<std::byte, 8> bytes{};
  wire::Segment segment;
  segment.kind = wire::SegmentKind::fetched;
  segment.length = 8;
  left.messenger.arrive(left.channel, segment, bytes);
  EXPECT_EQ(left.counters.refused_segment, 1u);
  ASSERT_EQ(atomic(AtomicOp::sum, true, 4, 2), Status::ok);
  segment.id = left.carrier.items[0].segment.id;
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{41}, ~std::uint64_t{0}}) {
    segment.offset = offset;
    left.messenger.arrive(left.channel, segment, bytes);
  }
  EXPECT_EQ(left.counters.refused_segment, 4u);
  run();
  EXPECT_EQ(outcome().status, Status::ok);
}

TEST_F(AtomicTest, RequestedOrderIsKept) {
  // A large write, then an atomic upon its last element: without that order the atomic comes first.
  for (const bool requested : {false, true}) {
    Ordering ordering;
    ordering.write_after_write = requested;
    attach(ordering);
    std::vector<std::uint64_t> fresh(kElements, 50);
    const RmaIov remote[] = {{0, kKey, kBytes}};
    ASSERT_EQ(write(keep({bytes_of(fresh), kBytes}), remote), Status::ok);
    ASSERT_EQ(atomic(AtomicOp::sum, false, kElements - 1, 1), Status::ok);
    run();
    EXPECT_EQ(left.take().size(), 2u);
    EXPECT_EQ(memory[kElements - 1], requested ? 57u : 50u);
  }
}

TEST_F(AtomicTest, AWriteWaitsForEarlierReadsIfThatOrderWasRequested) {
  Ordering ordering;
  ordering.write_after_read = true;
  attach(ordering);
  std::vector<std::byte> back(kBytes);
  const Bytes into[] = {back};
  const RmaIov remote[] = {{0, kKey, kBytes}};
  const auto before = memory;
  ASSERT_EQ(MessengerTest::read(into, remote), Status::ok);
  ASSERT_EQ(atomic(AtomicOp::write, false, 0, 1), Status::ok);
  EXPECT_EQ(left.carrier.items.size(), 1u);
  run();
  EXPECT_EQ(std::memcmp(back.data(), before.data(), kBytes), 0);
  EXPECT_EQ(memory[0], 7u);
}

TEST_F(AtomicTest, AMessageWaitsForEarlierReadsIfThatOrderWasRequested) {
  for (const bool requested : {false, true}) {
    Ordering ordering;
    ordering.send_after_read = requested;
    attach(ordering);
    std::vector<std::byte> back(kBytes);
    const Bytes into[] = {back};
    const RmaIov remote[] = {{0, kKey, kBytes}};
    ASSERT_EQ(MessengerTest::read(into, remote), Status::ok);
    send(left, pattern(8), 1);
    EXPECT_EQ(left.carrier.items.size(), requested ? 1u : 2u);
    std::byte note[8];
    receive(right, note, 1);
    run();
    EXPECT_EQ(left.take().size(), 2u);
    EXPECT_EQ(right.take().size(), 1u);
  }
}

TEST_F(AtomicTest, AFencedMessageLeavesWhenAllBeforeItIsComplete) {
  ASSERT_EQ(atomic(AtomicOp::sum, false, 0, 1), Status::ok);
  const ConstBytes slices[] = {keep(pattern(8))};
  SendOp order{.slices = slices, .length = 8};
  order.fence = true;
  ASSERT_EQ(left.messenger.send(left.channel, order), Status::ok);
  EXPECT_EQ(left.carrier.items.size(), 1u);
  carry(left, right);
  left.messenger.pump();
  EXPECT_TRUE(left.carrier.items.empty()) << "the atomic has not been answered yet";
  run();
  EXPECT_EQ(left.take().size(), 2u);
}

}  // namespace
}  // namespace cluster::protocol
