// What counters count: every operation once, on the side and in the kind that fi_endpoint(3), fi_cntr(3) and
// fi_mr(3) name, whether it is injected or not, and failures apart. One deviation (fi_cluster_endpoint(7)): at its target an atomic that
// changes memory counts as a write, even if it fetches.
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "fabric.h"

namespace conformance {
namespace {

constexpr std::uint64_t kCounterKey = 0x8000000000000031;
constexpr std::uint64_t kInitiated = FI_SEND | FI_RECV | FI_READ | FI_WRITE;
constexpr std::uint64_t kArriving = FI_REMOTE_READ | FI_REMOTE_WRITE;

Options counting(std::uint64_t bind_flags = 0) {
  Options options;
  options.caps = FI_MSG | FI_RMA | FI_ATOMIC | FI_RMA_EVENT | FI_DIRECTED_RECV;
  options.counted = kInitiated | kArriving;
  options.bind_flags = bind_flags;
  return options;
}

/// Memory of this side, and counters of what the other does to it.
struct Watched {
  Watched(Team& team, std::size_t size) : bytes(size, 1) {
    fid_domain* domain = team.endpoint.domain().domain();
    fid_mr* opened = nullptr;
    EXPECT_EQ(
        fi_mr_reg(domain, bytes.data(), size, kArriving, 0, kCounterKey, FI_RMA_EVENT, &opened, nullptr), 0);
    region.reset(opened);
    for (const auto& [place, kind] : {std::pair{&reads, FI_REMOTE_READ}, {&writes, FI_REMOTE_WRITE}}) {
      fi_cntr_attr attr{};
      fid_cntr* counter = nullptr;
      EXPECT_EQ(fi_cntr_open(domain, &attr, &counter, nullptr), 0);
      EXPECT_EQ(fi_mr_bind(opened, &counter->fid, kind), 0);
      place->reset(counter);
    }
    EXPECT_EQ(fi_mr_enable(opened), 0);
    team.meet();
  }
  std::vector<unsigned char> bytes;
  Owned<fid_cntr> reads;
  Owned<fid_cntr> writes;
  Owned<fid_mr> region;
};

/// Reading a counter is all that makes progress here.
void reaches(fid_cntr* counter, std::uint64_t value) {
  const Deadline deadline(std::chrono::seconds(20));
  while (fi_cntr_read(counter) < value && !deadline.passed()) yield_processor();
  EXPECT_EQ(fi_cntr_read(counter), value);
}

PAIR_TEST(Counter, EachKindCountsItsOwnOperationsOnce) {
  Team team(side, counting(FI_SELECTIVE_COMPLETION));
  constexpr std::size_t kLarge = 300000;
  Watched watched(team, kLarge);
  Endpoint& e = team.endpoint;
  std::vector<unsigned char> bytes(kLarge, 2);
  const std::uint64_t one = 1;
  std::uint64_t before = 0;
  if (side.first()) {
    const fi_addr_t to = team.peer();
    for (const std::size_t size : {std::size_t{8}, std::size_t{5000}, kLarge}) {
      e.must([&] { return fi_write(e.ep(), bytes.data(), size, nullptr, to, 0, kCounterKey, nullptr); });
      e.must([&] { return fi_read(e.ep(), bytes.data(), size, nullptr, to, 0, kCounterKey, nullptr); });
    }
    e.must([&] { return fi_inject_write(e.ep(), &one, 8, to, 0, kCounterKey); });
    e.must(
        [&] { return fi_atomic(e.ep(), &one, 1, nullptr, to, 0, kCounterKey, FI_UINT64, FI_SUM, nullptr); });
    e.must([&] { return fi_inject_atomic(e.ep(), &one, 1, to, 0, kCounterKey, FI_UINT64, FI_SUM); });
    e.must([&] {
      return fi_fetch_atomic(e.ep(), &one, 1, nullptr, &before, nullptr, to, 0, kCounterKey, FI_UINT64,
                             FI_SUM, nullptr);
    });
    e.must([&] {
      return fi_compare_atomic(e.ep(), &one, 1, nullptr, &one, nullptr, &before, nullptr, to, 0, kCounterKey,
                               FI_UINT64, FI_CSWAP, nullptr);
    });
    e.must([&] {
      return fi_fetch_atomic(e.ep(), nullptr, 1, nullptr, &before, nullptr, to, 0, kCounterKey, FI_UINT64,
                             FI_ATOMIC_READ, nullptr);
    });
    e.must([&] { return fi_send(e.ep(), &one, 8, nullptr, to, nullptr); });
    e.must([&] { return fi_inject(e.ep(), &one, 8, to); });
    reaches(e.counter(FI_WRITE), 3 + 1 + 2);
    reaches(e.counter(FI_READ), 3 + 3);
    reaches(e.counter(FI_SEND), 2);
    for (const std::uint64_t kind : {FI_RECV, FI_REMOTE_READ, FI_REMOTE_WRITE}) reaches(e.counter(kind), 0);
  } else {
    for (int i = 0; i < 2; ++i) {
      e.must([&] { return fi_recv(e.ep(), &before, 8, nullptr, team.peer(), nullptr); });
    }
    // An atomic counts as a write if it changes memory, whatever it fetches: a target that waits for that looks
    // at the counter of writes.
    reaches(e.counter(FI_REMOTE_WRITE), 3 + 1 + 2 + 2);
    reaches(e.counter(FI_REMOTE_READ), 3 + 1);
    reaches(e.counter(FI_RECV), 2);
    reaches(watched.writes.get(), 3 + 1 + 2 + 2);
    reaches(watched.reads.get(), 3 + 1);
    for (const std::uint64_t kind : {FI_SEND, FI_READ, FI_WRITE}) reaches(e.counter(kind), 0);
  }
  EXPECT_TRUE(e.silent(std::chrono::milliseconds(10))) << "no completion was requested";
  team.meet();
}

PAIR_TEST(Counter, FailuresAreCountedApartAndAtTheTargetNotAtAll) {
  Team team(side, counting(FI_SELECTIVE_COMPLETION));
  Watched watched(team, 64);
  Endpoint& e = team.endpoint;
  std::uint64_t value = 0;
  if (side.first()) {
    const fi_addr_t to = team.peer();
    e.must([&] { return fi_write(e.ep(), &value, 8, nullptr, to, 0, kCounterKey + 1, &value); });
    e.fail(&value, FI_EACCES);
    e.must([&] { return fi_inject_write(e.ep(), &value, 8, to, 0, kCounterKey + 1); });
    e.fail(nullptr, FI_EACCES);
    e.must([&] { return fi_inject_atomic(e.ep(), &value, 1, to, 64, kCounterKey, FI_UINT64, FI_SUM); });
    e.fail(nullptr, FI_EACCES);
    e.must([&] { return fi_read(e.ep(), &value, 8, nullptr, to, 60, kCounterKey, &value); });
    e.fail(&value, FI_EACCES);
    EXPECT_EQ(fi_cntr_readerr(e.counter(FI_WRITE)), 3u);
    EXPECT_EQ(fi_cntr_readerr(e.counter(FI_READ)), 1u);
    EXPECT_EQ(fi_cntr_read(e.counter(FI_WRITE)), 0u);
    EXPECT_EQ(fi_cntr_read(e.counter(FI_READ)), 0u);
  }
  team.meet();
  for (const std::uint64_t kind : {FI_REMOTE_READ, FI_REMOTE_WRITE}) {
    EXPECT_EQ(fi_cntr_read(e.counter(kind)), 0u);
    EXPECT_EQ(fi_cntr_readerr(e.counter(kind)), 0u);
  }
  EXPECT_EQ(fi_cntr_read(watched.writes.get()), 0u);
  team.meet();
}

PAIR_TEST(Counter, OfTheTargetIsSeenAfterTheBytes) {
  Team team(side, counting());
  constexpr std::size_t kSize = 40000;
  Watched watched(team, kSize);
  Endpoint& e = team.endpoint;
  for (std::uint64_t round = 1; round <= 50; ++round) {
    const auto data = pattern(kSize, round);
    if (side.first()) {
      e.must([&] { return fi_write(e.ep(), data.data(), kSize, nullptr, team.peer(), 0, kCounterKey, &e); });
      e.finish(&e);
    } else {
      reaches(round % 2 == 0 ? watched.writes.get() : e.counter(FI_REMOTE_WRITE), round);
      EXPECT_TRUE(has_pattern(watched.bytes, round));
      // The next write may be stored by the progress thread. The initiator begins it after meet(), which
      // ThreadSanitizer does not see; it sees the endpoint's lock.
      fi_cq_read(e.tx(), nullptr, 0);
    }
    team.meet();
  }
}

SINGLE_TEST(Counter, OneMayCountSeveralKindsButNoKindHasTwo) {
  Domain domain(counting());
  fi_cntr_attr attr{};
  fid_cntr* counters[2] = {};
  for (fid_cntr*& counter : counters) {
    ASSERT_EQ(fi_cntr_open(domain.domain(), &attr, &counter, nullptr), 0);
  }
  const Owned<fid_cntr> first(counters[0]), second(counters[1]);
  fid_ep* raw = nullptr;
  ASSERT_EQ(fi_endpoint(domain.domain(), domain.info(), &raw, nullptr), 0);
  const Owned<fid_ep> ep(raw);
  EXPECT_EQ(fi_ep_bind(raw, &first->fid, FI_SEND | FI_WRITE), 0);
  EXPECT_NE(fi_ep_bind(raw, &second->fid, FI_WRITE | FI_READ), 0);
  EXPECT_EQ(fi_ep_bind(raw, &second->fid, FI_READ | FI_REMOTE_WRITE), 0);
  EXPECT_EQ(fi_close(&first->fid), -FI_EBUSY);
}

SINGLE_TEST(Counter, CannotBeClosedWhileARegionHasIt) {
  Domain domain(counting());
  fi_cntr_attr attr{};
  fid_cntr* counter = nullptr;
  ASSERT_EQ(fi_cntr_open(domain.domain(), &attr, &counter, nullptr), 0);
  char memory[8];
  fid_mr* region = nullptr;
  ASSERT_EQ(fi_mr_reg(domain.domain(), memory, 8, FI_REMOTE_WRITE, 0, kCounterKey, 0, &region, nullptr), 0);
  EXPECT_EQ(fi_mr_bind(region, &counter->fid, FI_REMOTE_WRITE), 0);
  EXPECT_EQ(fi_close(&counter->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&region->fid), 0);
  EXPECT_EQ(fi_close(&counter->fid), 0);
}

}  // namespace
}  // namespace conformance
