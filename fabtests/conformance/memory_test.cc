// What a program can rely on in memory that peers change: on its own endpoint, and while the target's processor
// accesses the same memory. fabtests/litmus tests the order of operations.
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "fabric.h"

namespace conformance {
namespace {

constexpr std::uint64_t kMemoryKey = 0x8000000000000031;

Options memory_options() {
  Options options;
  options.caps = FI_MSG | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV;
  return options;
}

/// A region of this side, which all sides may change.
Owned<fid_mr> open_region(Team& team, void* memory, std::size_t bytes) {
  fid_mr* opened = nullptr;
  EXPECT_EQ(fi_mr_reg(team.endpoint.domain().domain(), memory, bytes, FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
                      kMemoryKey, 0, &opened, nullptr),
            0);
  team.meet();
  return Owned<fid_mr>(opened);
}

struct SharedWords {
  SharedWords(Team& team, std::size_t count)
      : words(count, 0), region(open_region(team, words.data(), 8 * count)) {}
  std::span<const unsigned char> bytes() const {
    return {reinterpret_cast<const unsigned char*>(words.data()), 8 * words.size()};
  }
  std::vector<std::int64_t> words;
  Owned<fid_mr> region;
};

/// Writes, reads, data, order and refusals, all on the endpoint's own memory.
SINGLE_TEST(Rma, OnesOwnMemoryIsReachedByTheSameRules) {
  constexpr std::size_t kMemory = 4 << 20;
  Options options = memory_options();
  options.order = FI_ORDER_WAW | FI_ORDER_RAW;
  Team team(side, options);
  SharedWords shared(team, kMemory / 8);
  Endpoint& e = team.endpoint;
  const fi_addr_t me = team.peers[0];
  int contexts[4] = {};
  for (const std::size_t size : {8u, 3000u, 200000u, 3u << 20}) {
    SCOPED_TRACE(size);
    const auto older = pattern(size, 1);
    const auto newer = pattern(size, size);
    std::vector<unsigned char> back(size);
    e.must([&] { return fi_write(e.ep(), older.data(), size, nullptr, me, 0, kMemoryKey, &contexts[0]); });
    e.must([&] {
      return fi_writedata(e.ep(), newer.data(), size, nullptr, 77, me, 0, kMemoryKey, &contexts[1]);
    });
    e.must([&] { return fi_read(e.ep(), back.data(), size, nullptr, me, 0, kMemoryKey, &contexts[2]); });
    const Outcome remote = e.finish(nullptr);
    EXPECT_EQ(remote.entry.data, 77u);
    EXPECT_TRUE(has_pattern(shared.bytes().first(size), size));
    for (int i = 0; i < 3; ++i) e.finish(&contexts[i]);
    EXPECT_TRUE(has_pattern(back, size)) << "the read has passed the writes before it";
  }
  e.must([&] { return fi_write(e.ep(), contexts, 8, nullptr, me, kMemory - 4, kMemoryKey, &contexts[3]); });
  e.fail(&contexts[3], FI_EACCES);
}

/// Memory that all sides of a test share, whatever nodes they are on, because they are forked.
std::int64_t* common_words() {
  static void* const mapped = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<std::int64_t*>(mapped);
}

/// All sides, the target included, add to an aligned element remotely. Meanwhile the target, and other processes that
/// map its memory, add to it by their processors' own instructions. Another element alternates between two values that
/// differ in every byte: each read must return one of the two.
void processors_take_part(Side& side) {
  Team team(side, memory_options());
  Endpoint& e = team.endpoint;
  std::int64_t* const words = common_words();
  ASSERT_NE(words, nullptr);
  const Owned<fid_mr> region = open_region(team, words, 4096);
  constexpr std::int64_t kRounds = 3000;
  const fi_addr_t owner = team.peers[0];
  std::atomic_ref sum(words[0]);
  std::atomic_ref whole(words[1]);
  std::atomic<bool> over{false};
  std::int64_t own = 0;
  std::int64_t torn = 0;
  std::thread processor([&] {
    while (!over) {
      for (int i = 0; i < 100000; ++i) {
        ++sum;
        ++own;
        const std::int64_t seen = whole;
        torn += seen != 0 && seen != -1;
      }
      yield_processor();
    }
  });
  const std::int64_t one = 1;
  for (std::int64_t round = 0; round < kRounds; ++round) {
    const std::int64_t value = -(round % 2);
    e.must([&] { return fi_inject_atomic(e.ep(), &one, 1, owner, 0, kMemoryKey, FI_INT64, FI_SUM); });
    e.must(
        [&] { return fi_inject_atomic(e.ep(), &value, 1, owner, 8, kMemoryKey, FI_INT64, FI_ATOMIC_WRITE); });
  }
  std::int64_t before = 0;
  e.must([&] {
    return fi_fetch_atomic(e.ep(), &one, 1, nullptr, &before, nullptr, owner, 16, kMemoryKey, FI_INT64,
                           FI_SUM, &before);
  });
  e.finish(&before);  // one side's atomics are in order, so all of this side's are done
  team.meet();
  over = true;
  processor.join();
  EXPECT_EQ(torn, 0) << "an element was seen half written";
  Blob mine(sizeof own);
  std::memcpy(mine.data(), &own, sizeof own);
  std::int64_t all = side.count() * kRounds;
  for (const Blob& blob : side.exchange(mine, [&] { e.progress(); })) {
    std::memcpy(&own, blob.data(), sizeof own);
    all += own;
  }
  EXPECT_EQ(sum.load(), all) << "additions are lost";
  team.meet();
}

TEST(Atomic, TheTargetsProcessorMayTakePart) {
  ASSERT_NE(common_words(), nullptr);  // mapped before the test forks the sides
  std::fill_n(common_words(), 512, 0);
  run_sides(3, processors_take_part);
}

}  // namespace
}  // namespace conformance
