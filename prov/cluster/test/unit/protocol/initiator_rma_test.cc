// Remote writes and reads that the initiator executes alone: which complete at once, which take the general
// path, and that none overtakes what it must not.
#include <gtest/gtest.h>

#include <algorithm>

#include "protocol/remote_access.h"
#include "support/messenger_pair.h"

namespace cluster::protocol {
namespace {

/// The target's table, reached without the target. It sees what the carrier holds.
class ReachedTable final : public MemoryAccess {
 public:
  ReachedTable(RegionTable& regions, const QueueCarrier& ring)
      : MemoryAccess(true), regions_(regions), ring_(ring) {}

  Outcome put(const RmaIov& to, const Gather& source, AccessTerms terms, carrier::AccessTicket) override {
    return access(to, Access::write, terms, [&](std::byte* target) { source.copy_to(target); });
  }
  Outcome get(const RmaIov& from, const Scatter& target, AccessTerms terms, carrier::AccessTicket) override {
    return access(from, Access::read, terms, [&](const std::byte* source) {
      scatter(target.slices, target.offset, {source, from.length});
    });
  }

  bool in_reach = true;
  int accesses = 0;

 private:
  template <typename Copy>
  Outcome access(const RmaIov& range, Access kind, AccessTerms terms, Copy&& copy) {
    const bool kept = !terms.after_puts() && (!terms.after_sends() || ring_.items.empty());
    if (!in_reach || !kept) return Outcome::unsuited;
    ++accesses;
    const bool allowed =
        regions_.with(range, kind, [&](std::byte* bytes, const MemoryRegion&) { copy(bytes); });
    return allowed ? Outcome::done : Outcome::denied;
  }

  RegionTable& regions_;
  const QueueCarrier& ring_;
};

class InitiatorRmaTest : public MessengerTest {
 protected:
  InitiatorRmaTest() : memory(kMemory) {
    regions.add(kKey, {memory.data(), 0, memory.size(), true, true, nullptr, nullptr});
    EndpointBindings bindings;
    bindings.tx_queue = bindings.rx_queue = &right.completions;
    bindings.regions = &regions;
    right.messenger.attach(bindings);
    auto table = std::make_unique<ReachedTable>(regions, left.carrier);
    reached = table.get();
    left.channel.rma.reached.access = std::move(table);
    open_with({});
  }

  void open_with(const Ordering& ordering) {
    EndpointBindings bindings;
    bindings.tx_queue = bindings.rx_queue = &left.completions;
    bindings.ordering = ordering;
    bindings.write_counter = &written;
    left.messenger.attach(bindings);
  }
  Status put(ConstBytes bytes, std::uint64_t address, WriteOp op = {}) {
    const RmaIov remote[] = {{address, kKey, bytes.size()}};
    return write(keep(bytes), remote, op);
  }
  Status put_with_data(ConstBytes bytes, std::uint64_t address) {
    return put(bytes, address, {{}, {}, 1, true});
  }
  Status put_fenced(ConstBytes bytes, std::uint64_t address) {
    return put(bytes, address, {{.fence = true}});
  }
  Status get(Bytes bytes, std::uint64_t address) {
    const Bytes slices[] = {bytes};
    const RmaIov remote[] = {{address, kKey, bytes.size()}};
    return read(slices, remote);
  }
  /// How many completions there are that the target has had no part in.
  std::size_t done_now() { return left.take().size(); }

  static constexpr std::uint64_t kKey = 5;
  static constexpr std::size_t kMemory = 1 << 20;
  std::vector<std::byte> memory;
  RegionTable regions;
  ReachedTable* reached = nullptr;
  Counter written;
};

TEST_F(InitiatorRmaTest, IsDoneWhenTheCallReturns) {
  for (const std::size_t size : {0u, 1u, 8u, 5000u, 300000u}) {
    const auto data = pattern(size);
    ASSERT_EQ(put(data, 100), Status::ok);
    EXPECT_EQ(outcome(left).kind, Completion::Kind::write);
    EXPECT_TRUE(std::equal(data.begin(), data.end(), memory.begin() + 100));
    std::vector<std::byte> back(size);
    ASSERT_EQ(get(back, 100), Status::ok);
    EXPECT_EQ(outcome(left).kind, Completion::Kind::read);
    EXPECT_EQ(back, data);
  }
  EXPECT_TRUE(left.carrier.items.empty()) << "the target took part";
  EXPECT_EQ(written.value(), 5u);
  EXPECT_EQ(left.counters.rma_alone, 10u);
}

TEST_F(InitiatorRmaTest, SeveralRangesAreOneOperation) {
  const auto data = keep(pattern(3000));
  const RmaIov remote[] = {{0, kKey, 1000}, {50000, kKey, 1}, {7000, kKey, 1999}};
  ASSERT_EQ(write(data, remote), Status::ok);
  EXPECT_EQ(outcome(left).status, Status::ok);
  EXPECT_TRUE(std::equal(data.begin(), data.begin() + 1000, memory.begin()));
  EXPECT_EQ(memory[50000], data[1000]);
  EXPECT_TRUE(std::equal(data.begin() + 1001, data.end(), memory.begin() + 7000));
  EXPECT_EQ(left.counters.rma_alone, 0u)
      << "each range once, and not all of them again behind one out of reach";
}

TEST_F(InitiatorRmaTest, WhatIsNotAllowedFailsAtOnce) {
  const auto data = pattern(100);
  const RmaIov foreign[] = {{0, kKey + 1, 100}};
  ASSERT_EQ(write(keep(data), foreign), Status::ok);
  EXPECT_EQ(outcome(left).status, Status::access);
  ASSERT_EQ(put(data, kMemory - 99), Status::ok);
  EXPECT_EQ(outcome(left).status, Status::access);
  EXPECT_EQ(std::count(memory.begin(), memory.end(), std::byte{0}), std::ptrdiff_t(kMemory));
  EXPECT_TRUE(left.carrier.items.empty());
}

TEST_F(InitiatorRmaTest, WhatIsOutOfReachIsServedByTheTarget) {
  reached->in_reach = false;
  for (const std::size_t size : {8u, 300000u}) {
    const auto data = pattern(size);
    ASSERT_EQ(put(data, 0), Status::ok);
    EXPECT_EQ(done_now(), 0u);
    run();
    EXPECT_EQ(done_now(), 1u);
    std::vector<std::byte> back(size);
    ASSERT_EQ(get(back, 0), Status::ok);
    EXPECT_EQ(done_now(), 0u);
    run();
    EXPECT_EQ(done_now(), 1u);
    EXPECT_EQ(back, data);
  }
  EXPECT_EQ(left.counters.rma_alone, 0u);
}

TEST_F(InitiatorRmaTest, DataForTheTargetGoesThroughTheTarget) {
  ASSERT_EQ(put_with_data(pattern(8), 0), Status::ok);
  EXPECT_EQ(done_now(), 0u);
  EXPECT_EQ(reached->accesses, 0);
  run();
  EXPECT_EQ(outcome(right).kind, Completion::Kind::remote_write);
  EXPECT_EQ(done_now(), 1u);
}

TEST_F(InitiatorRmaTest, WithoutAnOrderItDoesNotWaitForATargetThatSleeps) {
  put_with_data(pattern(8), 0);
  send(left, pattern(2000), 1);
  ASSERT_EQ(put(pattern(8), 64), Status::ok);
  std::vector<std::byte> back(8);
  ASSERT_EQ(get(back, 64), Status::ok);
  const auto done = left.take();
  EXPECT_EQ(std::count_if(done.begin(), done.end(),
                          [](const Completion& c) { return c.kind != Completion::Kind::send; }),
            2);
  EXPECT_EQ(back, pattern(8));
}

TEST_F(InitiatorRmaTest, AnOrderThatWasAskedForIsKept) {
  struct Case {
    Ordering ordering;
    bool write_waits, read_waits;
  };
  // Behind a write that the target has to serve.
  {
    for (const Case& each :
         {Case{{.write_after_write = true}, true, false}, Case{{.read_after_write = true}, false, true},
          Case{{.read_after_read = true, .write_after_read = true}, false, false}}) {
      open_with(each.ordering);
      put_with_data(pattern(8), 0);
      const int before = reached->accesses;
      ASSERT_EQ(put(pattern(8), 64), Status::ok);
      EXPECT_EQ(reached->accesses == before, each.write_waits);
      std::vector<std::byte> back(8);
      const int before_read = reached->accesses;
      ASSERT_EQ(get(back, 64), Status::ok);
      EXPECT_EQ(reached->accesses == before_read, each.read_waits);
      run();
      EXPECT_EQ(left.take().size(), 3u);
      right.take();
    }
  }
}

TEST_F(InitiatorRmaTest, OrderBehindMessagesLastsUntilTheTargetHasTakenThem) {
  open_with({.read_after_send = true, .write_after_send = true});
  send(left, pattern(8), 1);
  left.take();
  put(pattern(8), 0);
  std::vector<std::byte> back(8);
  get(back, 0);
  EXPECT_EQ(reached->accesses, 0);
  run();
  left.take();
  put(pattern(8), 0);
  get(back, 0);
  EXPECT_EQ(reached->accesses, 2);
}

TEST_F(InitiatorRmaTest, AFenceWaitsAndThenNeedsNoTarget) {
  put_with_data(pattern(8), 0);
  ASSERT_EQ(put_fenced(pattern(300000, 2), 0), Status::ok);
  ASSERT_EQ(put(pattern(8, 3), 400000), Status::ok) << "what comes behind a fence waits, too";
  EXPECT_EQ(reached->accesses, 0);
  run();
  EXPECT_EQ(reached->accesses, 2) << "when their turn came";
  EXPECT_EQ(left.take().size(), 3u);
  const auto data = pattern(300000, 2);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), memory.begin()));
  ASSERT_EQ(put_fenced(pattern(8), 0), Status::ok);
  EXPECT_EQ(done_now(), 1u) << "nothing was under way";
}

TEST_F(InitiatorRmaTest, AFencedReadSeesTheWriteBeforeIt) {
  reached->in_reach = false;
  const auto data = pattern(300000);
  put(data, 0);
  reached->in_reach = true;
  std::vector<std::byte> back(8);
  const Bytes slices[] = {back};
  const RmaIov remote[] = {{300000 - 8, kKey, 8}};
  ReadOp op;
  op.slices = slices;
  op.remote = remote;
  op.length = 8;
  op.fence = true;
  ASSERT_EQ(left.messenger.rma().read(left.channel, op), Status::ok);
  EXPECT_EQ(reached->accesses, 0);
  run();
  EXPECT_EQ(reached->accesses, 1);
  EXPECT_EQ(left.take().size(), 2u);
  EXPECT_TRUE(std::equal(back.begin(), back.end(), data.end() - 8));
}

TEST_F(InitiatorRmaTest, WhatIsInReachNeedsNoFreeRequest) {
  reached->in_reach = false;
  while (put(pattern(8), 0) == Status::ok) {
  }
  EXPECT_EQ(put(pattern(8, 9), 128), Status::again);
  EXPECT_EQ(reached->accesses, 0);
  reached->in_reach = true;
  EXPECT_EQ(put(pattern(8, 9), 128), Status::ok);
  EXPECT_EQ(reached->accesses, 1);
}

TEST_F(InitiatorRmaTest, ALostPeerIsOutOfReach) {
  left.messenger.fail(left.channel, Status::reset, true);
  EXPECT_EQ(left.channel.rma.reached.access, nullptr);
}

}  // namespace
}  // namespace cluster::protocol
