// Random histories of several origins on few words, judged for one order that explains them.
// usage: histories [--batches N] [--sides N] [--seed N | --seed-of TEXT] [--gtest_filter=...]
//
// In each round every side operates, at the same time, on the four words of one slot of one side: two that
// atomics change (of 1, 2, 4 or 8 bytes), two that aligned puts and gets of 8 bytes do. Some operations report nothing,
// and counters or a fenced get tell their end; some are fenced; some go to the side itself; the owner's processor loads
// and adds meanwhile; some sides work without calling the library. Sides keep their clock readings, which one machine
// makes comparable. After a batch of rounds the owner of each slot judges it (slot_history.h): an operation takes
// effect between its call and its completion, operations of one origin in the order that was asked for, and the last
// values are in memory. Everything must end within a bound.
//
// That aligned puts and gets of 8 bytes are one step each is no promise; it is observed here.
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <optional>

#include "fabric.h"
#include "sim/seeded_random.h"
#include "slot_history.h"

namespace conformance {
namespace {

using cluster::sim::SeededRandom;

constexpr std::uint64_t kKey = 44;
constexpr std::size_t kRounds = 32;  ///< of a batch, each with a slot of its own
constexpr std::size_t kHistoryMax = 48;

std::uint64_t batches = 3;
int sides = 4;
std::uint64_t seed = 1;

struct Slot {
  alignas(8) std::uint64_t words[kWords];
};

std::uint64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

/// One operation in flight, with the memory that it names.
struct Flight {
  std::size_t record = 0;
  int owner = 0;
  std::uint64_t operand = 0;
  std::uint64_t comparand = 0;
  std::uint64_t result = 0;
  bool busy = false;
};

struct Operation {
  Kind kind;
  fi_op op;
};
constexpr std::array<Operation, 15> kAtomics{{{Kind::sum, FI_SUM},
                                              {Kind::sum, FI_SUM},
                                              {Kind::write, FI_ATOMIC_WRITE},
                                              {Kind::read, FI_ATOMIC_READ},
                                              {Kind::bxor, FI_BXOR},
                                              {Kind::bor, FI_BOR},
                                              {Kind::band, FI_BAND},
                                              {Kind::least, FI_MIN},
                                              {Kind::greatest, FI_MAX},
                                              {Kind::swap_if_equal, FI_CSWAP},
                                              {Kind::swap_if_equal, FI_CSWAP},
                                              {Kind::swap_if_not_equal, FI_CSWAP_NE},
                                              {Kind::swap_if_less, FI_CSWAP_LT},
                                              {Kind::swap_if_greater, FI_CSWAP_GT},
                                              {Kind::swap_masked, FI_MSWAP}}};
constexpr std::uint64_t kKinds = FI_READ | FI_WRITE;  ///< that counters count, silent operations included
constexpr std::uint64_t kAllOrders = FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_WAW;

Options history_options(bool ordered) {
  Options options;
  options.caps = FI_MSG | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV | FI_FENCE;
  options.order = ordered ? kAllOrders : FI_ORDER_NONE;
  options.bind_flags = FI_SELECTIVE_COMPLETION;
  options.counted = kKinds;
  return options;
}

class Player {
 public:
  Player(Side& side, bool ordered)
      : team_(side, history_options(ordered)), e_(team_.endpoint), ordered_(ordered), memory_(kRounds) {
    fid_mr* opened = nullptr;
    EXPECT_EQ(fi_mr_reg(e_.domain().domain(), memory_.data(), memory_.size() * sizeof(Slot),
                        FI_REMOTE_READ | FI_REMOTE_WRITE, 0, kKey, 0, &opened, nullptr),
              0);
    region_.reset(opened);
  }

  void play(std::uint64_t batch) {
    records_.clear();
    std::fill(memory_.begin(), memory_.end(), Slot{});
    team_.meet();
    for (std::size_t round = 0; round < kRounds && !failed(); ++round) play_round(batch, round);
    team_.meet();  // nothing is under way any more
    judge(batch, exchange());
  }
  void finish() {
    team_.meet();  // the region is closed
    EXPECT_LE(undecided_, 1 + judged_ / 100) << "rounds had too many orders to be judged";
  }
  std::uint64_t operations() const { return operations_; }

 private:
  static constexpr std::size_t kInFlight = 3;

  static bool failed() { return testing::Test::HasFailure(); }
  int me() const { return team_.side.index(); }
  int count() const { return team_.side.count(); }
  int owner_of(std::uint64_t batch, std::size_t round) const {
    return static_cast<int>((batch * 7 + round / 4) % static_cast<std::uint64_t>(count()));
  }

  void play_round(std::uint64_t batch, std::size_t round) {
    const int owner = owner_of(batch, round);
    random_ = SeededRandom::stream(seed + batch, 1, round * 64 + static_cast<std::uint64_t>(me()));
    const std::size_t turns = random_.between(1, kHistoryMax / static_cast<std::size_t>(count()) - 1);
    const std::size_t first = records_.size();
    for (std::size_t turn = 0; turn < turns && !failed(); ++turn) {
      if (owner == me() && random_.chance(300'000)) {
        use_processor(round);
      } else {
        start(owner, round);
      }
      if (random_.chance(100'000)) work(round);
    }
    while (in_flight() > 0 && !failed()) land_one();
    flush(owner, round, first);
  }

  /// An operation of the processor on its own memory.
  void use_processor(std::size_t round) {
    Record record;
    record.round = static_cast<std::uint32_t>(round);
    record.word = static_cast<std::uint32_t>(random_.below(kWords));
    record.by_processor = record.fetches = true;
    record.kind = record.word < kAtomicWords && random_.chance(400'000) ? Kind::sum : Kind::read;
    record.operand = record.kind == Kind::sum ? 1 + random_.below(5) : 0;
    std::uint64_t& word = memory_[round].words[record.word];
    record.began = now();
    record.fetched = record.word >= kAtomicWords ? load(word, 64) : take(word, bits_of(round), record);
    record.ended = now();
    records_.push_back(record);
    ++operations_;
  }
  template <typename Element>
  static std::uint64_t take_as(std::uint64_t& word, const Record& record) {
    std::atomic_ref element(*reinterpret_cast<Element*>(&word));
    return record.kind == Kind::sum ? element.fetch_add(static_cast<Element>(record.operand))
                                    : element.load();
  }
  static std::uint64_t take(std::uint64_t& word, unsigned bits, const Record& record) {
    switch (bits) {
      case 8: return take_as<std::uint8_t>(word, record);
      case 16: return take_as<std::uint16_t>(word, record);
      case 32: return take_as<std::uint32_t>(word, record);
      default: return take_as<std::uint64_t>(word, record);
    }
  }
  static std::uint64_t load(std::uint64_t& word, unsigned bits) { return take(word, bits, {}); }

  /// Looks at this side's own memory for a while without any call.
  void work(std::size_t round) {
    const std::uint64_t until = now() + random_.below(60'000);
    while (now() < until) load(memory_[round].words[0], 64);
  }

  void start(int owner, std::size_t round) {
    while (in_flight() >= kInFlight && !failed()) land_one();
    if (failed()) return;  // all are in flight for ever
    Record record;
    record.round = static_cast<std::uint32_t>(round);
    record.word = static_cast<std::uint32_t>(random_.below(kWords));
    record.fenced = random_.chance(100'000);
    const std::uint64_t unique = records_.size() * 64 + static_cast<std::uint64_t>(me()) + 1;
    const std::uint64_t fence = record.fenced ? FI_FENCE : 0;
    Flight& flight = *std::find_if(flights_.begin(), flights_.end(), [](const Flight& f) { return !f.busy; });
    flight = {.record = records_.size(), .owner = owner};
    if (record.word >= kAtomicWords) {
      record.kind = random_.chance(500'000) ? Kind::read : Kind::write;
      record.fetches = record.kind == Kind::read;
      flight.operand = unique << 32 | unique;  // halves that do not fit together show
      record.operand = record.fetches ? 0 : flight.operand;
      const bool silent = !record.fetches && random_.chance(200'000);
      flight.busy = !silent;
      record.began = now();
      put_or_get(flight, record, fence | (silent ? FI_INJECT : FI_COMPLETION));
    } else {
      const Operation& operation = random_.pick(kAtomics);
      const unsigned bits = bits_of(round);
      record.kind = operation.kind;
      const bool compares = operation.kind >= Kind::swap_if_equal;
      record.fetches = compares || record.kind == Kind::read || random_.chance(600'000);
      flight.operand = random_.chance(500'000) ? random_.below(8) : cut(unique, bits);
      flight.comparand = random_.chance(500'000) ? 0 : random_.below(8);
      record.operand = flight.operand;
      record.comparand = flight.comparand;
      const bool silent = !record.fetches && random_.chance(300'000);
      flight.busy = !silent;
      record.began = now();
      operate(flight, record, operation.op, bits, fence | (silent ? 0 : FI_COMPLETION));
    }
    ++posted_[record.fetches ? FI_READ : FI_WRITE];
    records_.push_back(record);
    ++operations_;
  }
  static std::uint64_t cut(std::uint64_t value, unsigned bits) {
    return bits >= 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
  }
  static std::uint64_t place(const Record& record) {
    return record.round * sizeof(Slot) + record.word * sizeof(std::uint64_t);
  }

  void put_or_get(Flight& flight, const Record& record, std::uint64_t flags) {
    const bool get = record.kind == Kind::read;
    const iovec vector{get ? &flight.result : &flight.operand, sizeof flight.operand};
    const fi_rma_iov range{place(record), sizeof flight.operand, kKey};
    const fi_msg_rma message{&vector, nullptr, 1,       team_.peers[static_cast<std::size_t>(flight.owner)],
                             &range,  1,       &flight, 0};
    e_.must(
        [&] { return get ? fi_readmsg(e_.ep(), &message, flags) : fi_writemsg(e_.ep(), &message, flags); });
  }
  void operate(Flight& flight, const Record& record, fi_op op, unsigned bits, std::uint64_t flags) {
    const fi_datatype type = bits == 8    ? FI_UINT8
                             : bits == 16 ? FI_UINT16
                             : bits == 32 ? FI_UINT32
                                          : FI_UINT64;
    const fi_ioc operand{&flight.operand, 1};
    const fi_ioc comparand{&flight.comparand, 1};
    fi_ioc result{&flight.result, 1};
    const fi_rma_ioc range{place(record), 1, kKey};
    const fi_msg_atomic message{&operand, nullptr, 1,    team_.peers[static_cast<std::size_t>(flight.owner)],
                                &range,   1,       type, op,
                                &flight,  0};
    if (!flight.busy) flags |= FI_INJECT;
    e_.must([&] {
      if (record.kind >= Kind::swap_if_equal)
        return fi_compare_atomicmsg(e_.ep(), &message, &comparand, nullptr, 1, &result, nullptr, 1, flags);
      if (record.fetches) return fi_fetch_atomicmsg(e_.ep(), &message, &result, nullptr, 1, flags);
      return fi_atomicmsg(e_.ep(), &message, flags);
    });
  }

  std::size_t in_flight() const {
    return static_cast<std::size_t>(
        std::count_if(flights_.begin(), flights_.end(), [](const Flight& flight) { return flight.busy; }));
  }
  void land_one() {
    const auto outcome = e_.next();
    if (!outcome || outcome->error) {
      ADD_FAILURE() << "side " << me() << ": an operation "
                    << (outcome ? fi_strerror(outcome->failure.err) : "does not end");
      return;
    }
    Flight& flight = *static_cast<Flight*>(outcome->entry.op_context);
    Record& record = records_[flight.record];
    record.ended = now();
    record.fetched = flight.result;
    flight.busy = false;
  }
  /// Ends what has reported nothing, as an MPI does: by a fenced get, or by counters that have come so far.
  void flush(int owner, std::size_t round, std::size_t first) {
    if (random_.chance(500'000)) {
      await_counters();
    } else {
      get_fenced(owner, round);
    }
    const std::uint64_t ended = now();
    for (std::size_t i = first; i < records_.size(); ++i)
      records_[i].ended = std::min(records_[i].ended, ended);
  }
  void await_counters() {
    const Deadline deadline(std::chrono::seconds(20));
    for (const auto& [kind, posted] : posted_) {
      while (fi_cntr_read(e_.counter(kind)) < posted && !deadline.passed()) yield_processor();
      EXPECT_EQ(fi_cntr_read(e_.counter(kind)), posted) << "side " << me();
    }
  }
  void get_fenced(int owner, std::size_t round) {
    Flight& flight = flights_[0];
    flight = {.record = records_.size(), .owner = owner, .busy = true};
    Record record;
    record.round = static_cast<std::uint32_t>(round);
    record.word = kWords - 1;
    record.fetches = record.fenced = true;
    record.began = now();
    put_or_get(flight, record, FI_FENCE | FI_COMPLETION);
    ++posted_[FI_READ];
    records_.push_back(record);
    ++operations_;
    while (flight.busy && !failed()) land_one();
  }

  std::vector<std::vector<Record>> exchange() {
    const auto* bytes = reinterpret_cast<const unsigned char*>(records_.data());
    const std::vector<Blob> blobs =
        team_.side.exchange(Blob(bytes, bytes + records_.size() * sizeof(Record)), [this] { e_.progress(); });
    std::vector<std::vector<Record>> all;
    for (const Blob& blob : blobs) {
      all.emplace_back(blob.size() / sizeof(Record));
      std::memcpy(all.back().data(), blob.data(), blob.size());
    }
    return all;
  }

  void judge(std::uint64_t batch, const std::vector<std::vector<Record>>& all) {
    for (std::size_t round = 0; round < kRounds && !failed(); ++round) {
      if (owner_of(batch, round) == me()) judge_slot(round, all);
    }
  }
  void judge_slot(std::size_t round, const std::vector<std::vector<Record>>& all) {
    SlotValues last{};
    for (std::size_t word = 0; word < kWords; ++word)
      last[word] = load(memory_[round].words[word], word < kAtomicWords ? bits_of(round) : 64);
    const std::optional<std::string> why = why_unexplained(round, all, last, ordered_);
    ++judged_;
    if (!why) ++undecided_;
    if (why && !why->empty()) ADD_FAILURE() << *why;
  }

  Team team_;
  Endpoint& e_;
  bool ordered_;
  std::vector<Slot> memory_;
  Owned<fid_mr> region_;
  std::vector<Record> records_;
  std::array<Flight, kInFlight> flights_{};
  SeededRandom random_{1};
  std::uint64_t operations_ = 0;
  std::uint64_t judged_ = 0;                       ///< rounds whose slot lies here
  std::uint64_t undecided_ = 0;                    ///< of these, with too many orders to try
  std::map<std::uint64_t, std::uint64_t> posted_;  ///< by kind
};

void run(bool ordered) {
  run_sides(sides, [ordered](Side& side) {
    Player player(side, ordered);
    for (std::uint64_t batch = 0; batch < batches && !testing::Test::HasFailure(); ++batch)
      player.play(batch);
    player.finish();
    std::printf("side %d: %llu operations\n", side.index(),
                static_cast<unsigned long long>(player.operations()));
  });
}

TEST(Histories, WithEveryOrder) { run(true); }
TEST(Histories, WithoutOrder) { run(false); }

}  // namespace
}  // namespace conformance

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; i += 2) {
    const std::string option = argv[i];
    const char* const word = i + 1 < argc ? argv[i + 1] : "";
    const std::uint64_t value = std::strtoull(word, nullptr, 10);
    if (option == "--batches" && value > 0) {
      conformance::batches = value;
    } else if (option == "--seed" && value > 0) {
      conformance::seed = value;
    } else if (option == "--seed-of" && *word != '\0') {
      conformance::seed = cluster::sim::seed_of_text(word);
    } else if (option == "--sides" && value >= 2 && value <= 8) {
      conformance::sides = static_cast<int>(value);
    } else {
      std::fprintf(
          stderr, "usage: %s [--batches N] [--sides 2..8] [--seed N | --seed-of TEXT] [--gtest_filter=...]\n",
          argv[0]);
      return 2;
    }
  }
  std::printf("seed %" PRIu64 "\n", conformance::seed);
  std::fflush(stdout);
  return RUN_ALL_TESTS();
}
