// A process without memory (base/end_of_memory.h): whichever allocations fail, nothing is seen of it, a call is refused, or a
// peer is lost and its operations with it. No message comes twice or out of order, and none is lost that its sender
// believes to have arrived.
#include <gtest/gtest.h>

#include <algorithm>
#include <new>
#include <numeric>
#include <string>
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

/// Messages arrive in order up to some point, and each that succeeded at its sender is one of these.
TEST_F(NoMemoryTest, WhicheverAllocationOfAReceiverFailsNoMessageIsLostUnseen) {
  for (const std::size_t failures : {1, 100}) {
    for (std::size_t allowed = 0;; ++allowed) {
      std::size_t failed = 0;
      const Outcome outcome = receive_short_of_memory(allowed, failures, failed);
      if (failed == 0) break;
      SCOPED_TRACE("allocation " + std::to_string(allowed) + " of " + std::to_string(failures));
      EXPECT_EQ(outcome.words, first(outcome.words.size()));
      EXPECT_EQ(outcome.sent + outcome.unsent, kMessages);
      EXPECT_LE(outcome.sent, outcome.words.size());
      EXPECT_EQ(outcome.errors, 0u);
      if (outcome.sessions_ended == 0) {
        EXPECT_EQ(outcome.sent, kMessages);
      }
    }
  }
}

TEST_F(NoMemoryTest, WhicheverAllocationOfASenderFailsEachMessageEndsAsItIsReported) {
  for (const std::size_t failures : {1, 3}) {
    for (std::size_t allowed = 0;; ++allowed) {
      std::size_t failed = 0;
      std::vector<std::uint64_t> posted;
      const Outcome outcome = send_short_of_memory(allowed, failures, failed, posted);
      if (failed == 0) break;
      SCOPED_TRACE("allocation " + std::to_string(allowed) + " of " + std::to_string(failures));
      EXPECT_TRUE(std::ranges::includes(posted, outcome.words))
          << "in order, once, and none that was refused";
      EXPECT_EQ(outcome.sent + outcome.unsent, posted.size());
      EXPECT_LE(outcome.sent, outcome.words.size());
      if (outcome.sessions_ended == 0) {
        EXPECT_EQ(outcome.words, posted);
        EXPECT_EQ(outcome.sent, posted.size());
      }
    }
  }
}

/// An endpoint that is lost to itself reaches itself again with the next message.
TEST_F(NoMemoryTest, WhicheverAllocationFailsAnEndpointReachesItselfAgain) {
  for (std::size_t allowed = 0;; ++allowed) {
    SCOPED_TRACE("allocation " + std::to_string(allowed));
    Node a(network, kA, kA, 1000);
    std::vector<std::uint64_t> words(3);
    post(a, words);
    std::size_t posted = 0;
    std::size_t failed = 0;
    {
      const FailingMemory memory(allowed, 1);
      const std::uint64_t word = 7;
      const ConstBytes slice = as_bytes(&word, sizeof word);
      try {
        posted += a.engine.send({.slices = {&slice, 1}, .length = sizeof word}) == Status::ok ? 1 : 0;
      } catch (const std::bad_alloc&) {
      }
      for (int i = 0; i < 3; ++i) EXPECT_NO_THROW(a.engine.poll());
      failed = FailingMemory::failed();
    }
    a.engine.poll();
    Outcome outcome;
    take_completions(a, a, outcome);
    EXPECT_EQ(outcome.sent + outcome.unsent, posted);
    post(a, words);  // a loss may have ended the others
    a.send();
    a.engine.poll();
    take_completions(a, a, outcome);
    EXPECT_EQ(outcome.sent + outcome.unsent, posted + 1);
    ASSERT_FALSE(outcome.words.empty());
    EXPECT_EQ(outcome.words.back(), 1u);
    if (failed == 0) break;
  }
}

/// The peer is alive: nobody has to look for it before the next message.
TEST_F(NoMemoryTest, TheMessageAfterALossArrives) {
  unsigned losses = 0;
  const auto pass_time = [this](Node& one, Node& other, unsigned turns) {
    for (unsigned i = 0; i < turns; ++i) {
      clock.advance(100us);
      one.engine.poll();
      other.engine.poll();
    }
  };
  for (std::size_t allowed = 0;; ++allowed) {
    Node a(network, kA, kB, 1000);
    Node b(network, kB, kA, 1000);
    std::vector<std::uint64_t> words(kMessages);
    post(a, words);
    unsigned frames = 0;
    network.drop = [&frames](const auto&, const auto&) { return frames++ % 5 == 4; };
    std::size_t failed = 0;
    std::size_t left = allowed;
    for (int i = 0; i < 10 && b.counters().sessions_closed == 0; ++i) {
      {
        const FailingMemory memory(left, 1);
        try {
          b.send();
        } catch (const std::bad_alloc&) {
        }
        b.engine.poll();
        failed += FailingMemory::failed();
        left = FailingMemory::failed() == 0 ? FailingMemory::left() : FailingMemory::kAlways;
      }
      pass_time(a, b, 1);
    }
    network.drop = nullptr;
    if (failed == 0) break;
    if (b.counters().sessions_closed == 0) continue;
    ++losses;
    Outcome before, next;
    take_completions(b, a, before);
    b.send();
    pass_time(b, a, 20);
    take_completions(b, a, next);
    EXPECT_EQ(next.sent, 1u);
  }
  EXPECT_GT(losses, 0u);
}

}  // namespace
}  // namespace cluster::engine
