// Locks, a barrier and a queue, made of remote operations alone.
// usage: locks [--rounds N] [--sides N] [--gtest_filter=...]
//
// Each is written as its textbook has it, and shows what it must: that two sides never own a lock at once (two
// words that only the owner reads and writes are always equal, and count every turn), that no side leaves a
// barrier before all have come, that a queue loses, doubles and reorders nothing. All would stand still if an
// operation were lost, took effect too late, or waited for a target that looks only at its own memory and calls
// the library now and then.
//
// Side 0 owns what is shared. Where the setting has two nodes, even and odd sides are on different ones.
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "fabric.h"

namespace conformance {
namespace {

using Word = std::uint64_t;
constexpr std::uint64_t kKey = 43;
constexpr int kSidesMax = 8;

Word rounds = 100;
int sides = 4;

/// What a test keeps at side 0, or at every side; the index of a word.
enum Place : std::size_t {
  kLock = 0,
  kTicket = 1,
  kServing = 2,
  kProtected = 8,  ///< two words
  kNext = 16,      ///< of each side: its node in the queue of MCS
  kWaiting = 17,
  kArrived = 24,
  kGeneration = 25,  ///< of each side
  kCame = 32,        ///< of each side: in which round each side has come to the barrier
  kHead = 48,
  kTail = 49,
  kSlots = 64,  ///< pairs: state, value
  kWords = 128,
};
constexpr Word kCapacity = 4;  ///< of the queue: fewer than sides

Options lock_options() {
  Options options;
  options.caps = FI_MSG | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV;
  return options;
}

/// One side: words that all may change, and operations on those of any side. An operation is complete when
/// its function returns, so no order is needed.
class Memory {
 public:
  explicit Memory(Side& side) : team_(side, lock_options()), e_(team_.endpoint) {
    fid_mr* opened = nullptr;
    EXPECT_EQ(fi_mr_reg(e_.domain().domain(), words_, sizeof words_, FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
                        kKey, 0, &opened, nullptr),
              0);
    region_.reset(opened);
    meet();
  }
  ~Memory() { meet(); }  // the region is closed

  Word me() const { return static_cast<Word>(team_.side.index()); }
  void meet() { team_.meet(); }
  std::vector<Blob> exchange(const Blob& mine) {
    return team_.side.exchange(mine, [this] { e_.progress(); });
  }

  Word fetch(Word owner, std::size_t place, fi_op op, Word operand = 0) {
    Word before = 0;
    e_.must([&] {
      return fi_fetch_atomic(e_.ep(), &operand, 1, nullptr, &before, nullptr, team_.peers[owner], 8 * place,
                             kKey, FI_UINT64, op, &before);
    });
    e_.finish(&before);
    return before;
  }
  Word add(Word owner, std::size_t place, Word operand) { return fetch(owner, place, FI_SUM, operand); }
  Word look(Word owner, std::size_t place) { return fetch(owner, place, FI_ATOMIC_READ); }
  Word compare_swap(Word owner, std::size_t place, Word compare, Word operand) {
    Word before = 0;
    e_.must([&] {
      return fi_compare_atomic(e_.ep(), &operand, 1, nullptr, &compare, nullptr, &before, nullptr,
                               team_.peers[owner], 8 * place, kKey, FI_UINT64, FI_CSWAP, &before);
    });
    e_.finish(&before);
    return before;
  }
  void set(Word owner, std::size_t place, Word value) {
    e_.must([&] {
      return fi_atomic(e_.ep(), &value, 1, nullptr, team_.peers[owner], 8 * place, kKey, FI_UINT64,
                       FI_ATOMIC_WRITE, &value);
    });
    e_.finish(&value);
  }
  void put(Word owner, std::size_t place, std::span<const Word> values) {
    e_.must([&] {
      return fi_write(e_.ep(), values.data(), values.size_bytes(), nullptr, team_.peers[owner], 8 * place,
                      kKey, this);
    });
    e_.finish(this);
  }
  void get(Word owner, std::size_t place, std::span<Word> values) {
    e_.must([&] {
      return fi_read(e_.ep(), values.data(), values.size_bytes(), nullptr, team_.peers[owner], 8 * place,
                     kKey, this);
    });
    e_.finish(this);
  }
  /// A look at one's own memory by the processor.
  Word own(std::size_t place) { return std::atomic_ref(words_[place]).load(std::memory_order_acquire); }

  /// Waits until `done` says so; false, and a failure of the test, if that takes too long.
  bool wait(const std::function<bool()>& done) {
    const Deadline deadline(std::chrono::seconds(60));
    while (!done()) {
      if (deadline.passed()) {
        ADD_FAILURE() << "side " << me() << " waits for ever";
        return false;
      }
      e_.progress();
      yield_processor();
    }
    return true;
  }

  /// What only the owner of a lock does: false if another one does it, too.
  bool raise_protected() {
    Word words[2];
    get(0, kProtected, words);
    const bool equal = words[0] == words[1];
    for (std::size_t i = 0; i < 2; ++i) {
      ++words[i];
      put(0, kProtected + i, {&words[i], 1});
    }
    return equal;
  }
  /// How often raise_protected() was done, when all are done.
  void expect_turns(Word turns) {
    meet();
    if (me() == 0) {
      EXPECT_EQ(own(kProtected), turns);
      EXPECT_EQ(own(kProtected + 1), turns);
    }
  }

 private:
  alignas(64) Word words_[kWords] = {};
  Team team_;
  Endpoint& e_;
  Owned<fid_mr> region_;
};

/// Every side takes its turns under a lock.
template <typename Acquire, typename Release>
void exclude(Side& side, Acquire&& acquire, Release&& release) {
  Memory memory(side);
  for (Word round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
    if (!acquire(memory)) return;
    EXPECT_TRUE(memory.raise_protected()) << "two sides own the lock, round " << round;
    release(memory);
  }
  memory.expect_turns(static_cast<Word>(sides) * rounds);
}

void test_and_set(Side& side) {
  exclude(
      side, [](Memory& m) { return m.wait([&] { return m.compare_swap(0, kLock, 0, m.me() + 1) == 0; }); },
      [](Memory& m) { m.set(0, kLock, 0); });
}

void ticket(Side& side) {
  exclude(
      side,
      [](Memory& m) {
        const Word mine = m.add(0, kTicket, 1);
        return m.wait([&] { return m.look(0, kServing) == mine; });
      },
      [](Memory& m) { m.add(0, kServing, 1); });
}

/// Mellor-Crummey and Scott. Each side waits at a word of its own memory, and makes no call but for progress.
void mcs(Side& side) {
  exclude(
      side,
      [](Memory& m) {
        m.set(m.me(), kNext, 0);
        m.set(m.me(), kWaiting, 1);
        const Word before = m.fetch(0, kLock, FI_ATOMIC_WRITE, m.me() + 1);
        if (before == 0) return true;
        m.set(before - 1, kNext, m.me() + 1);
        return m.wait([&] { return m.own(kWaiting) == 0; });
      },
      [](Memory& m) {
        if (m.compare_swap(0, kLock, m.me() + 1, 0) == m.me() + 1) return;
        if (m.wait([&] { return m.own(kNext) != 0; })) m.set(m.own(kNext) - 1, kWaiting, 0);
      });
}

/// One word: how many read, and a high bit for the one that writes.
void readers_and_writers(Side& side) {
  constexpr Word kWriter = Word{1} << 63;
  Memory m(side);
  Word written = 0;
  for (Word round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
    if ((round + m.me()) % 4 == 0) {
      if (!m.wait([&] { return m.compare_swap(0, kLock, 0, kWriter) == 0; })) return;
      EXPECT_TRUE(m.raise_protected()) << "two sides write, round " << round;
      m.add(0, kLock, kWriter);  // the bit wraps around; readers that have come and will leave stay counted
      ++written;
      continue;
    }
    const bool entered = m.wait([&] {
      if ((m.add(0, kLock, 1) & kWriter) == 0) return true;
      m.add(0, kLock, ~Word{0});
      return false;
    });
    if (!entered) return;
    Word words[2];
    m.get(0, kProtected, {&words[0], 1});
    m.get(0, kProtected + 1, {&words[1], 1});
    EXPECT_EQ(words[0], words[1]) << "a reader saw half a write, round " << round;
    m.add(0, kLock, ~Word{0});
  }
  Blob mine(sizeof written);
  std::memcpy(mine.data(), &written, sizeof written);
  Word all = 0;
  for (const Blob& blob : m.exchange(mine)) {
    std::memcpy(&written, blob.data(), sizeof written);
    all += written;
  }
  m.expect_turns(all);
}

/// The last to come says so to all; the others look at their own memory. Before it comes, each side puts the
/// round into the memory of all others.
void barrier(Side& side) {
  Memory m(side);
  const auto count = static_cast<Word>(sides);
  for (Word round = 1; round <= rounds && !testing::Test::HasFailure(); ++round) {
    for (Word other = 0; other < count; ++other) m.put(other, kCame + m.me(), {&round, 1});
    if (m.add(0, kArrived, 1) + 1 == count * round) {
      for (Word other = 0; other < count; ++other) m.set(other, kGeneration, round);
    } else if (!m.wait([&] { return m.own(kGeneration) >= round; })) {
      return;
    }
    for (Word other = 0; other < count; ++other) {
      EXPECT_GE(m.own(kCame + other), round) << "side " << other << " had not come to round " << round;
    }
  }
  m.meet();
}

/// Many producers and many consumers. A slot's state says whose turn it is: `position` to be filled,
/// `position` + 1 to be emptied. Every side fills one slot and empties one, in turns.
void bounded_queue(Side& side) {
  Memory m(side);
  const auto slot = [](Word position) { return kSlots + 2 * (position % kCapacity); };
  if (m.me() == 0) {
    for (Word i = 0; i < kCapacity; ++i) m.set(0, slot(i), i);
  }
  m.meet();
  std::array<Word, kSidesMax> last{};
  Word sum = 0;
  for (Word round = 1; round <= rounds && !testing::Test::HasFailure(); ++round) {
    const Word value = m.me() << 32 | round;
    const Word fill = m.add(0, kTail, 1);
    if (!m.wait([&] { return m.look(0, slot(fill)) == fill; })) return;
    m.put(0, slot(fill) + 1, {&value, 1});
    m.set(0, slot(fill), fill + 1);
    const Word empty = m.add(0, kHead, 1);
    if (!m.wait([&] { return m.look(0, slot(empty)) == empty + 1; })) return;
    Word taken = 0;
    m.get(0, slot(empty) + 1, {&taken, 1});
    m.set(0, slot(empty), empty + kCapacity);
    const Word producer = taken >> 32;
    const Word number = taken & 0xffffffff;
    ASSERT_LT(producer, static_cast<Word>(sides));
    EXPECT_GT(number, last[producer]) << "values of side " << producer << " were reordered or doubled";
    last[producer] = number;
    sum += number;
  }
  Blob mine(sizeof sum);
  std::memcpy(mine.data(), &sum, sizeof sum);
  Word all = 0;
  for (const Blob& blob : m.exchange(mine)) {
    std::memcpy(&sum, blob.data(), sizeof sum);
    all += sum;
  }
  EXPECT_EQ(all, static_cast<Word>(sides) * rounds * (rounds + 1) / 2) << "values were lost or doubled";
}

TEST(Locks, TestAndSet) { run_sides(sides, test_and_set); }
TEST(Locks, Ticket) { run_sides(sides, ticket); }
TEST(Locks, Mcs) { run_sides(sides, mcs); }
TEST(Locks, ReadersAndWriters) { run_sides(sides, readers_and_writers); }
TEST(Locks, Barrier) { run_sides(sides, barrier); }
TEST(Locks, BoundedQueue) { run_sides(sides, bounded_queue); }

}  // namespace
}  // namespace conformance

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const bool known = (option == "--rounds" || option == "--sides") && i + 1 < argc;
    if (!known) {
      std::fprintf(stderr, "usage: %s [--rounds N] [--sides 2-8] [--gtest_filter=...]\n", argv[0]);
      return 2;
    }
    const unsigned long long value = std::strtoull(argv[++i], nullptr, 10);
    if (option == "--rounds") conformance::rounds = value;
    if (option == "--sides") conformance::sides = static_cast<int>(value);
  }
  if (conformance::sides < 2 || conformance::sides > conformance::kSidesMax || conformance::rounds == 0) {
    std::fprintf(stderr, "%s: --sides: 2 to %d; --rounds: at least 1\n", argv[0], conformance::kSidesMax);
    return 2;
  }
  return RUN_ALL_TESTS();
}
