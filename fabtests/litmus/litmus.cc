// Order, as an observer sees it. usage: litmus [--rounds N] [--gtest_filter=...]
//
// Side 0 owns the memory; sides 1 and 2 change it at the same time, each its own area. Where the setting has
// two nodes, side 1 is on the other one and side 2 on the owner's, so one run shows what is local, what is
// remote and what is mixed. In round r an initiator changes `data` to r by one operation and tells r by a
// second one, `flag`, without waiting for the first; data has one of four sizes, some in a single
// segment, some in many, some pulled by the target. A thread of the owner that has nothing to do with
// libfabric looks at the memory all the time: whatever flag it sees, data must be at least as new.
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

/// What one initiator may change at the owner.
struct Area {
  alignas(64) Word flag;
  alignas(64) Word data[10000];
  alignas(64) Word slots[3][10000];
};

/// Every period-th round changes so many words; longer periods contain the shorter ones' words.
struct Size {
  Word period;
  std::size_t words;
};
constexpr Size kSizes[] = {{1, 1}, {8, 375}, {64, 2500}, {1024, 8750}};

std::size_t words_of(Word round, std::size_t words_max) {
  std::size_t words = 1;
  for (const Size& size : kSizes) {
    if (round % size.period == 0 && size.words <= words_max) words = size.words;
  }
  return words;
}

Word look(Word& word) { return std::atomic_ref(word).load(std::memory_order_acquire); }

/// True if data is as new as a flag of `round` promises.
bool as_new_as(Area& area, Word round, std::size_t words_max) {
  for (const Size& size : kSizes) {
    if (size.words > words_max) continue;
    const Word last = round / size.period * size.period;
    if (look(area.data[size.words - 1]) < last) return false;
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
    const Word told[] = {static_cast<Word>(team_.side.index()), round};
    e_.must([&] { return fi_inject(e_.ep(), told, sizeof told, owner()); });
  }

  /// Reads a slot, writes it, reads it again, all at once: what was there before, then what was written.
  bool read_write_read(Word round) {
    const std::size_t slot = round % 64 == 0 ? 2 : round % 8 == 0 ? 1 : 0;
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

struct Shape {
  std::uint64_t order = 0;                      ///< asked for when the endpoint is opened
  std::function<void(Initiator&, Word)> round;  ///< what an initiator does in each
  std::function<bool(Area&)> look;              ///< what an observer finds to be so, always
  std::function<bool(Area&, Word)> told;        ///< likewise, when a message has told a round
};

/// The owner: serves, hears, and has memory looked at until all initiators are done.
void own(Team& team, const Shape& shape) {
  std::vector<Area> areas(kSides - 1);
  std::memset(areas.data(), 0, areas.size() * sizeof(Area));
  Endpoint& e = team.endpoint;
  fid_mr* opened = nullptr;
  ASSERT_EQ(fi_mr_reg(e.domain().domain(), areas.data(), areas.size() * sizeof(Area),
                      FI_REMOTE_READ | FI_REMOTE_WRITE, 0, kKey, 0, &opened, nullptr),
            0);
  const Owned<fid_mr> region(opened);
  std::array<Word[2], 64> messages{};
  const auto listen = [&](Word(&message)[2]) {
    const iovec vector{message, sizeof message};
    const fi_msg receive{&vector, nullptr, 1, FI_ADDR_UNSPEC, message, 0};
    e.must([&] { return fi_recvmsg(e.ep(), &receive, FI_COMPLETION); });
  };
  if (shape.told) {
    for (auto& message : messages) listen(message);
  }
  team.meet();
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> violations{0};
  std::thread observer([&] {
    while (!over.load(std::memory_order_relaxed)) {
      for (Area& area : areas) {
        if (shape.look && !shape.look(area)) ++violations;
      }
      yield_processor();
    }
  });
  if (shape.told) {
    for (std::uint64_t left = rounds * (kSides - 1); left > 0; --left) {
      const auto outcome = e.next();
      if (!outcome || outcome->error) {
        ADD_FAILURE() << "a message is missing";
        break;
      }
      auto& message = *static_cast<Word(*)[2]>(outcome->entry.op_context);
      if (!shape.told(areas[message[0] - 1], message[1])) ++violations;
      listen(message);
    }
  }
  team.meet();
  over = true;
  observer.join();
  EXPECT_EQ(violations.load(), 0u) << "something was overtaken";
}

void run(Side& side, const Shape& shape) {
  Team team(side, litmus_options(shape.order));
  if (side.first()) {
    own(team, shape);
  } else {
    Initiator initiator(team);
    team.meet();
    for (Word round = 1; round <= rounds && !testing::Test::HasFailure(); ++round)
      shape.round(initiator, round);
    initiator.finish();
    team.meet();
  }
  team.meet();  // the region is closed
}

bool flag_then_data(Area& area) { return as_new_as(area, look(area.flag), ~std::size_t{0}); }
bool flag_then_little_data(Area& area) { return as_new_as(area, look(area.flag), 375); }

SIDES_TEST(Litmus, PutPut, kSides) {
  run(side, {.order = FI_ORDER_WAW,
             .round = [](Initiator& i, Word round) { i.put_data(round), i.put_flag(round); },
             .look = flag_then_data,
             .told = {}});
}

SIDES_TEST(Litmus, PutSend, kSides) {
  run(side, {.order = FI_ORDER_SAW,
             .round = [](Initiator& i, Word round) { i.put_data(round), i.send_flag(round); },
             .look = {},
             .told = [](Area& area, Word round) { return as_new_as(area, round, ~std::size_t{0}); }});
}

SIDES_TEST(Litmus, PutAtomic, kSides) {
  run(side, {.order = FI_ORDER_WAW,
             .round = [](Initiator& i, Word round) { i.put_data(round), i.atomic_flag(round); },
             .look = flag_then_data,
             .told = {}});
}

SIDES_TEST(Litmus, AtomicPut, kSides) {
  run(side, {.order = FI_ORDER_WAW,
             .round = [](Initiator& i, Word round) { i.atomic_data(round), i.put_flag(round); },
             .look = flag_then_little_data,
             .told = {}});
}

SIDES_TEST(Litmus, AtomicSend, kSides) {
  run(side, {.order = FI_ORDER_SAW,
             .round = [](Initiator& i, Word round) { i.atomic_data(round), i.send_flag(round); },
             .look = {},
             .told = [](Area& area, Word round) { return as_new_as(area, round, 375); }});
}

/// Two sums that grow one after the other.
SIDES_TEST(Litmus, AtomicAtomic, kSides) {
  run(side, {.order = FI_ORDER_ATOMIC_WAW,
             .round = [](Initiator& i, Word) { i.add(offsetof(Area, data)), i.add(offsetof(Area, flag)); },
             .look =
                 [](Area& area) {
                   const Word second = look(area.flag);
                   return look(area.data[0]) >= second;
                 },
             .told = {}});
}

SIDES_TEST(Litmus, GetPutGet, kSides) {
  run(side,
      {.order = FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_RAR | FI_ORDER_WAW,
       .round = [](Initiator& i, Word round) { EXPECT_TRUE(i.read_write_read(round)) << "round " << round; },
       .look = {},
       .told = {}});
}

/// Nothing is asked for, but every flag is fenced.
SIDES_TEST(Litmus, PutFencePut, kSides) {
  run(side, {.order = 0,
             .round = [](Initiator& i, Word round) { i.put_data(round), i.put_flag(round, FI_FENCE); },
             .look = flag_then_data,
             .told = {}});
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
  return RUN_ALL_TESTS();
}
