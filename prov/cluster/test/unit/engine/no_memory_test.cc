// A process without memory: arrivals wait or are retransmitted; none is lost or reported twice.
#include <gtest/gtest.h>

#include <new>
#include <numeric>
#include <vector>

#include "support/failing_memory.h"
#include "support/node.h"

namespace cluster::engine {
namespace {

using test::FailingMemory;
using test::kA;
using test::kB;
using test::Node;

constexpr std::uint64_t kMessages = 40;

class NoMemoryTest : public test::EngineTest {
 protected:
  struct Outcome {
    std::vector<std::uint64_t> words;  ///< received, in that order
    std::size_t errors = 0;
    std::size_t sent = 0;    ///< messages of which their sender knows that they arrived
    std::size_t unsent = 0;  ///< messages that failed at their sender: they may be lost
    std::uint64_t sessions_ended = 0;
  };
  void take_completions(Node& sender, Node& receiver, Outcome& outcome) {
    const auto any = [](const protocol::Completion&) { return true; };
    sender.sent.drain(~std::size_t{0}, any, [&](const protocol::Completion& completion) {
      ++(completion.status == Status::ok ? outcome.sent : outcome.unsent);
    });
    receiver.received.drain(~std::size_t{0}, any, [&](const protocol::Completion& completion) {
      if (completion.status != Status::ok) {
        ++outcome.errors;
      } else {
        std::uint64_t word;
        std::memcpy(&word, completion.buffer, sizeof word);
        outcome.words.push_back(word);
      }
    });
  }
  void post(Node& node, std::vector<std::uint64_t>& words) {
    for (std::uint64_t& word : words) {
      const Bytes slice = as_bytes(&word, sizeof word);
      EXPECT_EQ(node.engine.receive({.slices = {&slice, 1}, .ignore = ~std::uint64_t{0}}), Status::ok);
    }
  }
  /// Messages arrive while the receiver's allocations fail from one on; half of them find a receive.
  Outcome receive_short_of_memory(std::size_t allowed, std::size_t failures, std::size_t& failed) {
    Outcome outcome;
    Node a(network, kA, kB, 1000);
    Node b(network, kB, kA, 1000);
    std::vector<std::uint64_t> early(kMessages / 2);
    std::vector<std::uint64_t> late(kMessages - early.size());
    post(a, early);
    for (std::uint64_t i = 0; i < kMessages; ++i) b.send();
    for (int i = 0; i < 400; ++i) {
      clock.advance(20us);
      {
        const FailingMemory memory(allowed, failures);
        EXPECT_NO_THROW(a.engine.poll());
        failed += FailingMemory::failed();
        allowed = FailingMemory::failed() == 0 ? FailingMemory::left() : FailingMemory::kAlways;
      }
      b.engine.poll();
    }
    post(a, late);
    for (int i = 0; i < 100; ++i) {
      clock.advance(20ms);
      a.engine.poll();
      b.engine.poll();
    }
    take_completions(b, a, outcome);
    outcome.sessions_ended = b.counters().sessions_closed + a.counters().sessions_closed;
    EXPECT_TRUE(a.engine.quiescent());
    EXPECT_TRUE(b.engine.quiescent());
    return outcome;
  }
  /// Messages are posted while the sender's allocations fail from one on, and each fifth frame is lost. `posted`: those that were not refused.
  Outcome send_short_of_memory(std::size_t allowed, std::size_t failures, std::size_t& failed,
                               std::vector<std::uint64_t>& posted) {
    Outcome outcome;
    Node a(network, kA, kB, 1000);
    Node b(network, kB, kA, 1000);
    std::vector<std::uint64_t> words(3 * kMessages);
    post(a, words);
    unsigned frames = 0;
    network.drop = [&frames](const auto&, const auto&) { return frames++ % 5 == 0; };
    for (std::uint64_t word = 1; word <= words.size(); ++word) {
      {
        const ConstBytes slice = as_bytes(&word, sizeof word);
        const FailingMemory memory(allowed, failures);
        try {
          if (b.engine.send({.slices = {&slice, 1}, .length = sizeof word}) == Status::ok) {
            const test::SpareMemory spare;
            posted.push_back(word);
          }
        } catch (const std::bad_alloc&) {
        }
        EXPECT_NO_THROW(b.engine.poll());
        failed += FailingMemory::failed();
        allowed = FailingMemory::failed() == 0 ? FailingMemory::left() : FailingMemory::kAlways;
      }
      clock.advance(20us);
      if (word % 4 == 0) a.engine.poll();
    }
    for (int i = 0; i < 100; ++i) {
      clock.advance(20ms);
      a.engine.poll();
      b.engine.poll();
    }
    network.drop = nullptr;
    take_completions(b, a, outcome);
    outcome.sessions_ended = b.counters().sessions_closed + a.counters().sessions_closed;
    EXPECT_TRUE(b.engine.quiescent());
    return outcome;
  }
  static std::vector<std::uint64_t> first(std::size_t count) {
    std::vector<std::uint64_t> words(count);
    std::iota(words.begin(), words.end(), 1);
    return words;
  }
};

TEST_F(NoMemoryTest, WhicheverAllocationFailsOnceEveryMessageComesOnceAndInOrder) {
  for (std::size_t allowed = 0;; ++allowed) {
    std::size_t failed = 0;
    const Outcome outcome = receive_short_of_memory(allowed, 1, failed);
    if (failed == 0) break;
    EXPECT_EQ(outcome.words, first(kMessages)) << "allocation " << allowed;
    EXPECT_EQ(outcome.errors, 0u) << "allocation " << allowed;
    EXPECT_EQ(outcome.sessions_ended, 0u) << "allocation " << allowed;
  }
}

TEST_F(NoMemoryTest, WhicheverAllocationFailsWhatWasPostedArrivesAndWhatWasRefusedDoesNot) {
  for (const std::size_t failures : {1, 3}) {
    for (std::size_t allowed = 0;; ++allowed) {
      std::size_t failed = 0;
      std::vector<std::uint64_t> posted;
      const Outcome outcome = send_short_of_memory(allowed, failures, failed, posted);
      if (failed == 0) break;
      EXPECT_EQ(outcome.words, posted) << "allocation " << allowed << " of " << failures;
      EXPECT_EQ(outcome.sent, posted.size()) << "allocation " << allowed << " of " << failures;
      EXPECT_EQ(outcome.sessions_ended, 0u) << "allocation " << allowed << " of " << failures;
    }
  }
}

/// A session may end because there is no memory for a message that the peer must get. Its messages arrive in
/// order up to some point, which covers each that succeeded at its sender.
TEST_F(NoMemoryTest, WhereThereIsNoMemoryForAWhileNoMessageIsLostUnseen) {
  for (std::size_t allowed = 0;; ++allowed) {
    std::size_t failed = 0;
    const Outcome outcome = receive_short_of_memory(allowed, 100, failed);
    if (failed == 0) break;
    EXPECT_EQ(outcome.words, first(outcome.words.size())) << "allocation " << allowed;
    EXPECT_EQ(outcome.sent + outcome.unsent, kMessages) << "allocation " << allowed;
    EXPECT_LE(outcome.sent, outcome.words.size()) << "allocation " << allowed;
    EXPECT_EQ(outcome.errors, 0u) << "allocation " << allowed;
    if (outcome.sessions_ended == 0) {
      EXPECT_EQ(outcome.sent, kMessages) << "allocation " << allowed;
    }
  }
}

}  // namespace
}  // namespace cluster::engine
