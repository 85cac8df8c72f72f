// Thousands of messages of mixed sizes, both ways, every byte checked; many senders to one; and
// several threads, each with an endpoint of its own.
#include <random>
#include <thread>

#include "fabric.h"

namespace conformance {
namespace {

#ifdef CLUSTER_SANITIZED
constexpr unsigned kMessages = 100;
#else
constexpr unsigned kMessages = 400;
#endif

std::size_t stress_size(std::mt19937_64& dice) {
  switch (dice() % 20) {
    case 0: return dice() % 1000000;
    case 1:
    case 2: return 16000 + dice() % 40000;
    case 3: return 0;
    case 4:
    case 5:
    case 6: return dice() % 8000;
    default: return dice() % 256;
  }
}

/// A window of messages to one peer and of receives from it, kept full until `count` went each way.
class Traffic {
 public:
  Traffic(Endpoint& e, fi_addr_t peer, std::uint64_t out_seed, std::uint64_t in_seed, unsigned count)
      : e_(e),
        peer_(peer),
        out_seed_(out_seed),
        in_seed_(in_seed),
        count_(count),
        out_dice_(out_seed),
        in_dice_(in_seed) {}

  void run() {
    const Deadline deadline(longest_test() / 2);
    while ((sent_ < count_ || received_ < count_) && !deadline.passed() && !testing::Test::HasFailure()) {
      while (posted_out_ < count_ && posted_out_ - sent_ < kWindow && post_send()) {
      }
      while (posted_in_ < count_ && posted_in_ - received_ < kWindow && post_receive()) {
      }
      const auto outcome = e_.next(std::chrono::milliseconds(1));
      if (outcome) take(*outcome);
    }
    EXPECT_EQ(sent_, count_);
    EXPECT_EQ(received_, count_);
  }

 private:
  static constexpr unsigned kWindow = 24;
  struct Slot {
    unsigned number = 0;
    std::vector<unsigned char> bytes;
    std::size_t size = 0;
    bool out = false;
  };

  bool post_send() {
    if (ready_out_.bytes.empty()) {
      ready_out_.size = stress_size(out_dice_);
      ready_out_.bytes = pattern(ready_out_.size + 1, out_seed_ + posted_out_);
    }
    auto slot = std::make_unique<Slot>();
    slot->out = true;
    const ssize_t result = fi_tsenddata(e_.ep(), ready_out_.bytes.data(), ready_out_.size, nullptr,
                                        posted_out_, peer_, posted_out_ % 5, slot.get());
    if (result == -FI_EAGAIN) return false;
    EXPECT_EQ(result, 0);
    slot->bytes.swap(ready_out_.bytes);
    slot.release();
    ++posted_out_;
    return result == 0;
  }

  bool post_receive() {
    auto slot = std::make_unique<Slot>();
    slot->number = posted_in_;
    slot->size = next_in_size_ ? *next_in_size_ : stress_size(in_dice_);
    next_in_size_ = slot->size;
    slot->bytes.resize(slot->size + 1);
    const fi_addr_t from = posted_in_ % 2 == 0 ? peer_ : fi_addr_t{FI_ADDR_UNSPEC};
    const ssize_t result =
        fi_trecv(e_.ep(), slot->bytes.data(), slot->size, nullptr, from, posted_in_ % 5, 0, slot.get());
    if (result == -FI_EAGAIN) return false;
    EXPECT_EQ(result, 0);
    next_in_size_.reset();
    slot.release();
    ++posted_in_;
    return result == 0;
  }

  void take(const Outcome& outcome) {
    ASSERT_FALSE(outcome.error) << fi_strerror(outcome.failure.err);
    const std::unique_ptr<Slot> slot(static_cast<Slot*>(outcome.entry.op_context));
    if (slot->out) {
      ++sent_;
      return;
    }
    ++received_;
    ASSERT_EQ(outcome.entry.len, slot->size) << "message " << slot->number;
    ASSERT_EQ(outcome.entry.data, slot->number);
    slot->bytes.resize(slot->size);
    ASSERT_TRUE(has_pattern(slot->bytes, in_seed_ + slot->number)) << "message " << slot->number;
  }

  Endpoint& e_;
  fi_addr_t peer_;
  std::uint64_t out_seed_, in_seed_;
  unsigned count_;
  std::mt19937_64 out_dice_, in_dice_;
  Slot ready_out_;
  std::optional<std::size_t> next_in_size_;
  unsigned posted_out_ = 0, posted_in_ = 0, sent_ = 0, received_ = 0;
};

PAIR_TEST(Stress, ThousandsOfMixedMessagesBothWays) {
  Team team(side);
  const std::uint64_t mine = 1000000 * (static_cast<std::uint64_t>(side.index()) + 1);
  Traffic(team.endpoint, team.peer(), mine, 3000000 - mine, 10 * kMessages).run();
}

SIDES_TEST(Stress, ManySendersToOneReceiver, 5) {
  Team team(side);
  Endpoint& e = team.endpoint;
  constexpr unsigned kCount = 60;
  const unsigned senders = static_cast<unsigned>(side.count()) - 1;
  const auto size_of = [](unsigned i) { return i % 3 == 0 ? std::size_t{250000} : std::size_t{i} * 100; };
  if (!side.first()) {
    const auto me = static_cast<std::uint64_t>(side.index());
    std::vector<std::vector<unsigned char>> data;
    std::vector<int> contexts(kCount);
    for (unsigned i = 0; i < kCount; ++i) data.push_back(pattern(size_of(i), me * 1000 + i));
    for (unsigned i = 0; i < kCount; ++i) {
      e.must([&] {
        return fi_tsend(e.ep(), data[i].data(), data[i].size(), nullptr, team.peers[0], me, &contexts[i]);
      });
    }
    for (int& context : contexts) e.finish(&context);
    return;
  }
  std::vector<unsigned> next(senders + 1);
  std::vector<unsigned char> buffer(300000);
  int context = 0;
  for (unsigned i = 0; i < kCount * senders; ++i) {
    e.must([&] {
      return fi_trecv(e.ep(), buffer.data(), buffer.size(), nullptr, FI_ADDR_UNSPEC, 0, ~std::uint64_t{0},
                      &context);
    });
    const Outcome outcome = e.finish(&context);
    const auto from = outcome.entry.tag;
    ASSERT_LE(from, senders);
    ASSERT_EQ(outcome.source, team.peers[from]);
    ASSERT_EQ(outcome.entry.len, size_of(next[from])) << "order of sender " << from;
    ASSERT_TRUE(has_pattern({buffer.data(), outcome.entry.len}, from * 1000 + next[from]));
    ++next[from];
  }
}

PAIR_TEST(Stress, ThreadsWithAnEndpointEach) {
  constexpr std::size_t kThreads = 4;
  Domain domain;
  std::vector<std::unique_ptr<Endpoint>> endpoints;
  std::vector<fi_addr_t> peers;
  for (std::size_t i = 0; i < kThreads; ++i) {
    endpoints.push_back(std::make_unique<Endpoint>(domain));
    const auto names = side.exchange(endpoints.back()->name());
    peers.push_back(domain.insert(names[static_cast<std::size_t>(1 - side.index())]));
  }
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const std::uint64_t mine =
          10000000 * (i + 1) + 1000000 * (static_cast<std::uint64_t>(side.index()) + 1);
      const std::uint64_t theirs =
          10000000 * (i + 1) + 1000000 * (2 - static_cast<std::uint64_t>(side.index()));
      Traffic(*endpoints[i], peers[i], mine, theirs, kMessages).run();
    });
  }
  for (auto& thread : threads) thread.join();
  side.meet([&] {
    for (auto& endpoint : endpoints) endpoint->progress();
  });
}

}  // namespace
}  // namespace conformance
