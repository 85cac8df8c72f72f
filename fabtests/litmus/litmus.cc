// Ordering of operations, as an observer sees it. usage: litmus [--rounds N] [--gtest_filter=...]
//
// Side 0 owns the memory; sides 1 and 2 change it at the same time, each its own area. Where the setting has
// two nodes, side 1 is on the other one and side 2 on the owner's, so one run covers local, remote and mixed
// access. In round r an initiator changes `data` to r by one operation and `flag` to r by a second one,
// without waiting for the first; data has one of four sizes: in a single segment, in several, and pulled by
// the target. A thread of the owner that calls no function of libfabric reads the memory all the time: for
// any flag it reads, data must be at least as new.
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "fabric.h"

namespace conformance {
namespace {

std::uint64_t rounds = 3000;

using Word = std::uint64_t;
constexpr std::uint64_t kKey = 42;
constexpr int kSides = 3;

/// The memory of the owner that one initiator may change.
struct Area {
  alignas(64) Word flag;
  alignas(64) Word data[10000];
  alignas(64) Word slots[3][10000];
};

/// Every period-th round changes this many words; a longer period is a multiple of the shorter ones. A run of
/// kRoundsMin rounds has each size several times.
struct Size {
  Word period;
  std::size_t words;
};
constexpr Size kSizes[] = {{1, 1}, {4, 375}, {16, 2500}, {64, 8750}};
constexpr std::uint64_t kRoundsMin = 3 * kSizes[3].period;

std::size_t words_of(Word round, std::size_t words_max) {
  std::size_t words = 1;
  for (const Size& size : kSizes) {
    if (round % size.period == 0 && size.words <= words_max) words = size.words;
  }
  return words;
}

Word load(Word& word) { return std::atomic_ref(word).load(std::memory_order_acquire); }

/// True if data is at least as new as `round`.
bool as_new_as(Area& area, Word round, std::size_t words_max) {
  for (const Size& size : kSizes) {
    if (size.words > words_max) continue;
    const Word last = round / size.period * size.period;
    if (load(area.data[size.words - 1]) < last) return false;
  }
  return true;
}

Options litmus_options(std::uint64_t order) {
  Options options;
  options.caps = FI_MSG | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV | FI_FENCE;
  options.order = order;
  options.bind_flags = FI_SELECTIVE_COMPLETION;
  return options;
}

class Initiator {
 public:
  explicit Initiator(Team& team)
      : team_(team), e_(team.endpoint), base_((team.side.index() - 1) * sizeof(Area)) {
    for (auto& source : sources_) source.resize(std::size(Area{}.data));
  }

  void put_data(Word round, std::size_t words_max = ~std::size_t{0}) {
    const std::size_t words = words_of(round, words_max);
    const std::uint64_t at = base_ + offsetof(Area, data);
    if (words == 1) return inject_put(at, round, 0);
    write(next_source(words, round), words, at);
  }
  void atomic_data(Word round) {
    const std::size_t words = words_of(round, 375);
    std::vector<Word>& source = next_source(words, round);
    const fi_ioc vector{source.data(), words};
    const fi_rma_ioc range{base_ + offsetof(Area, data), words, kKey};
    const fi_msg_atomic message{&vector,   nullptr,         1,       owner(), &range, 1,
                                FI_UINT64, FI_ATOMIC_WRITE, &source, 0};
    e_.must([&] { return fi_atomicmsg(e_.ep(), &message, FI_COMPLETION); });
  }
  void put_flag(Word round, std::uint64_t flags = 0) {
    inject_put(base_ + offsetof(Area, flag), round, flags);
  }
  void atomic_flag(Word round) {
    e_.must([&] {
      return fi_inject_atomic(e_.ep(), &round, 1, owner(), base_ + offsetof(Area, flag), kKey, FI_UINT64,
                              FI_MAX);
    });
  }
  void add(std::uint64_t at) {
    const Word one = 1;
    e_.must([&] { return fi_inject_atomic(e_.ep(), &one, 1, owner(), base_ + at, kKey, FI_UINT64, FI_SUM); });
  }
  void send_flag(Word round) {
    const Word message[] = {static_cast<Word>(team_.side.index()), round};
    e_.must([&] { return fi_inject(e_.ep(), message, sizeof message, owner()); });
  }

  /// Posts a read of a slot, a write and a second read, then waits: the first read must return the old value,
  /// the second the new one.
  bool read_write_read(Word round) {
    const std::size_t slot = round % kSizes[3].period == 0 ? 2 : round % kSizes[2].period == 0 ? 1 : 0;
    const std::size_t words = kSizes[slot + 1].words;
    const std::uint64_t at = base_ + offsetof(Area, slots) + slot * sizeof(Area::slots[0]);
    read(before_, words, at);
    write(next_source(words, round), words, at);
    read(after_, words, at);
    e_.finish(&before_);
    e_.finish(&after_);
    bool kept = true;
    for (std::size_t i = 0; i < words; ++i) kept = kept && before_[i] == last_[slot] && after_[i] == round;
    last_[slot] = round;
    return kept;
  }

  void finish() {
    for (std::size_t i = 0; i < kSources; ++i) wait_for(i);
  }

 private:
  static constexpr std::size_t kSources = 8;

  fi_addr_t owner() const { return team_.peers[0]; }

  void inject_put(std::uint64_t at, Word word, std::uint64_t flags) {
    const iovec vector{&word, sizeof word};
    const fi_rma_iov range{at, sizeof word, kKey};
    const fi_msg_rma message{&vector, nullptr, 1, owner(), &range, 1, nullptr, 0};
    e_.must([&] { return fi_writemsg(e_.ep(), &message, FI_INJECT | flags); });
  }
  void write(std::vector<Word>& source, std::size_t words, std::uint64_t at) {
    const iovec vector{source.data(), words * sizeof(Word)};
    const fi_rma_iov range{at, vector.iov_len, kKey};
    const fi_msg_rma message{&vector, nullptr, 1, owner(), &range, 1, &source, 0};
    e_.must([&] { return fi_writemsg(e_.ep(), &message, FI_COMPLETION); });
  }
  void read(std::vector<Word>& target, std::size_t words, std::uint64_t at) {
    target.resize(std::size(Area{}.data));
    const iovec vector{target.data(), words * sizeof(Word)};
    const fi_rma_iov range{at, vector.iov_len, kKey};
    const fi_msg_rma message{&vector, nullptr, 1, owner(), &range, 1, &target, 0};
    e_.must([&] { return fi_readmsg(e_.ep(), &message, FI_COMPLETION); });
  }

  std::vector<Word>& next_source(std::size_t words, Word round) {
    const std::size_t i = next_++ % kSources;
    wait_for(i);
    in_use_[i] = true;
    std::fill_n(sources_[i].begin(), words, round);
    return sources_[i];
  }
  void wait_for(std::size_t i) {
    if (in_use_[i]) e_.finish(&sources_[i]);
    in_use_[i] = false;
  }

  Team& team_;
  Endpoint& e_;
  std::uint64_t base_;
  std::array<std::vector<Word>, kSources> sources_;
  std::array<bool, kSources> in_use_{};
  std::size_t next_ = 0;
  std::vector<Word> before_, after_;
  std::array<Word, 3> last_{};
};

struct Pattern {
  std::uint64_t order = 0;                         ///< requested when the endpoint is opened
  std::function<void(Initiator&, Word)> round;     ///< what an initiator does in each round
  std::function<bool(Area&)> invariant;            ///< holds at any time; empty: not checked
  std::function<bool(Area&, Word)> after_message;  ///< holds when the message of a round has arrived
};

/// The owner: makes progress, receives messages, and checks memory until all initiators are done.
void own(Team& team, const Pattern& pattern) {
  std::vector<Area> areas(kSides - 1);
  std::memset(areas.data(), 0, areas.size() * sizeof(Area));
  Endpoint& e = team.endpoint;
  fid_mr* opened = nullptr;
  ASSERT_EQ(fi_mr_reg(e.domain().domain(), areas.data(), areas.size() * sizeof(Area),
                      FI_REMOTE_READ | FI_REMOTE_WRITE, 0, kKey, 0, &opened, nullptr),
            0);
  const Owned<fid_mr> region(opened);
  std::array<Word[2], 64> messages{};
  const auto post_receive = [&](Word(&message)[2]) {
    const iovec vector{message, sizeof message};
    const fi_msg receive{&vector, nullptr, 1, FI_ADDR_UNSPEC, message, 0};
    e.must([&] { return fi_recvmsg(e.ep(), &receive, FI_COMPLETION); });
  };
  if (pattern.after_message) {
    for (auto& message : messages) post_receive(message);
  }
  team.meet();
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> violations{0};
  std::thread observer([&] {
    while (!over.load(std::memory_order_relaxed)) {
      for (Area& area : areas) {
        if (pattern.invariant && !pattern.invariant(area)) ++violations;
      }
      yield_processor();
    }
  });
  if (pattern.after_message) {
    for (std::uint64_t left = rounds * (kSides - 1); left > 0; --left) {
      const auto outcome = e.next();
      if (!outcome || outcome->error) {
        ADD_FAILURE() << "a message is missing";
        break;
      }
      auto& message = *static_cast<Word(*)[2]>(outcome->entry.op_context);
      if (!pattern.after_message(areas[message[0] - 1], message[1])) ++violations;
      post_receive(message);
    }
  }
  team.meet();
  over = true;
  observer.join();
  EXPECT_EQ(violations.load(), 0u) << "data was older than its flag";
}

void run(Side& side, const Pattern& pattern) {
  Team team(side, litmus_options(pattern.order));
  if (side.first()) {
    own(team, pattern);
  } else {
    Initiator initiator(team);
    team.meet();
    for (Word round = 1; round <= rounds && !testing::Test::HasFailure(); ++round)
      pattern.round(initiator, round);
    initiator.finish();
    team.meet();
  }
  team.meet();  // the region is closed
}

bool flag_then_data(Area& area) { return as_new_as(area, load(area.flag), ~std::size_t{0}); }
bool flag_then_little_data(Area& area) { return as_new_as(area, load(area.flag), 375); }

SIDES_TEST(Litmus, PutPut, kSides) {
  run(side, {.order = FI_ORDER_WAW,
             .round = [](Initiator& i, Word round) { i.put_data(round), i.put_flag(round); },
             .invariant = flag_then_data,
             .after_message = {}});
}

/// The puts of two rounds go to the same place: without an order among them the older might come last.
SIDES_TEST(Litmus, PutSend, kSides) {
  run(side,
      {.order = FI_ORDER_SAW | FI_ORDER_WAW,
       .round = [](Initiator& i, Word round) { i.put_data(round), i.send_flag(round); },
       .invariant = {},
       .after_message = [](Area& area, Word round) { return as_new_as(area, round, ~std::size_t{0}); }});
}

SIDES_TEST(Litmus, PutAtomic, kSides) {
  run(side, {.order = FI_ORDER_WAW,
             .round = [](Initiator& i, Word round) { i.put_data(round), i.atomic_flag(round); },
             .invariant = flag_then_data,
             .after_message = {}});
}

SIDES_TEST(Litmus, AtomicPut, kSides) {
  run(side, {.order = FI_ORDER_WAW,
             .round = [](Initiator& i, Word round) { i.atomic_data(round), i.put_flag(round); },
             .invariant = flag_then_little_data,
             .after_message = {}});
}

SIDES_TEST(Litmus, AtomicSend, kSides) {
  run(side, {.order = FI_ORDER_SAW,
             .round = [](Initiator& i, Word round) { i.atomic_data(round), i.send_flag(round); },
             .invariant = {},
             .after_message = [](Area& area, Word round) { return as_new_as(area, round, 375); }});
}

/// Two sums that grow one after the other.
SIDES_TEST(Litmus, AtomicAtomic, kSides) {
  run(side, {.order = FI_ORDER_ATOMIC_WAW,
             .round = [](Initiator& i, Word) { i.add(offsetof(Area, data)), i.add(offsetof(Area, flag)); },
             .invariant =
                 [](Area& area) {
                   const Word second = load(area.flag);
                   return load(area.data[0]) >= second;
                 },
             .after_message = {}});
}

SIDES_TEST(Litmus, GetPutGet, kSides) {
  run(side,
      {.order = FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_RAR | FI_ORDER_WAW,
       .round = [](Initiator& i, Word round) { EXPECT_TRUE(i.read_write_read(round)) << "round " << round; },
       .invariant = {},
       .after_message = {}});
}

/// No order is requested, but every flag is fenced.
SIDES_TEST(Litmus, PutFencePut, kSides) {
  run(side, {.order = 0,
             .round = [](Initiator& i, Word round) { i.put_data(round), i.put_flag(round, FI_FENCE); },
             .invariant = flag_then_data,
             .after_message = {}});
}

}  // namespace
}  // namespace conformance

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--rounds" && i + 1 < argc) {
      conformance::rounds = std::strtoull(argv[++i], nullptr, 10);
    } else {
      std::fprintf(stderr, "usage: %s [--rounds N] [--gtest_filter=...]\n", argv[0]);
      return 2;
    }
  }
  if (conformance::rounds < conformance::kRoundsMin) {
    std::fprintf(stderr, "%s: --rounds: at least %llu, or some sizes are not reached\n", argv[0],
                 static_cast<unsigned long long>(conformance::kRoundsMin));
    return 2;
  }
  return RUN_ALL_TESTS();
}
