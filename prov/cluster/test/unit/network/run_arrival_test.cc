// Long messages between engines whose links hand frames on back to back, as segmentation offload does: they
// arrive intact in runs, over a bad network too. Damaged or duplicate frames are handled one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "support/node.h"

namespace cluster::test {
namespace {

struct RunArrival : EngineTest {
  RunArrival() { network.conditions.joined = true; }

  static std::vector<std::byte> content(std::size_t length, std::uint32_t seed) {
    std::vector<std::byte> bytes(length);
    for (std::size_t i = 0; i < length; ++i)
      bytes[i] = static_cast<std::byte>((i + seed) * 2654435761u >> 13);
    return bytes;
  }
  /// Sends messages of these lengths from `a` to `b`, two at a time, and expects them intact.
  void exchange(const std::vector<std::size_t>& lengths) {
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const std::vector<std::byte> first = content(lengths[i], static_cast<std::uint32_t>(i));
      const std::vector<std::byte> second = content(lengths[i] / 2 + 1, static_cast<std::uint32_t>(i + 50));
      std::vector<std::byte> got_first(first.size()), got_second(second.size());
      post(first, got_first);
      post(second, got_second);
      std::size_t sent = 0;
      std::size_t received = 0;
      for (int turns = 0; (sent < 2 || received < 2) && turns < 200'000; ++turns) {
        clock.advance(5us);
        a.engine.poll();
        b.engine.poll();
        sent += test::take_count(a.sent);
        received += test::take_count(b.received);
      }
      ASSERT_EQ(sent, 2u);
      ASSERT_EQ(received, 2u);
      EXPECT_EQ(got_first, first);
      EXPECT_EQ(got_second, second);
    }
  }
  void post(const std::vector<std::byte>& from, std::vector<std::byte>& to) {
    const ConstBytes source(from);
    const Bytes target(to);
    ASSERT_EQ(b.engine.receive({.slices = {&target, 1}}), Status::ok);
    ASSERT_EQ(a.engine.send({.slices = {&source, 1}, .length = from.size()}), Status::ok);
  }

  Node a{network, kA, kB, 1};
  Node b{network, kB, kA, 2};
};

TEST_F(RunArrival, LongMessagesArriveIntact) {
  exchange({10'000, 60'000, 64 * 1024, 100'000, 300'000, 1024 * 1024});
  EXPECT_EQ(a.counters().frames_retransmitted, 0u);
  EXPECT_EQ(a.counters().frames_sent, b.counters().frames_received);
  EXPECT_EQ(b.counters().frames_duplicate, 0u);
}

/// The rest begins or ends messages, requests and bursts: those frames are checked first and copied then.
TEST_F(RunArrival, MostBytesAreCheckedWhileTheyAreCopied) {
  for (const std::size_t length : {60'000, 1024 * 1024}) {
    const Counters before = b.counters();
    exchange({length, length});
    const Counters after = b.counters();
    const std::uint64_t all = after.bytes_received - before.bytes_received;
    EXPECT_GT(after.bytes_checked_in_copy - before.bytes_checked_in_copy, all * 8 / 10) << length;
  }
}

/// Their memory is in several pieces, or too small for the message.
TEST_F(RunArrival, ReceivesInPiecesOrTooShortGetWhatBelongsThere) {
  const std::vector<std::byte> message = content(50'000, 1);
  const ConstBytes source(message);
  std::vector<std::byte> memory(message.size() + 3 * 64);
  const std::array<Bytes, 3> pieces{Bytes(memory).first(7), Bytes(memory).subspan(71, 20'001),
                                    Bytes(memory).subspan(20'136, 10'000)};
  ASSERT_EQ(b.engine.receive({.slices = pieces}), Status::ok);
  ASSERT_EQ(a.engine.send({.slices = {&source, 1}, .length = message.size()}), Status::ok);
  std::size_t received = 0;
  for (int turns = 0; received == 0 && turns < 200'000; ++turns) {
    clock.advance(5us);
    a.engine.poll();
    b.engine.poll();
    received += test::take(b.received).size();
  }
  ASSERT_EQ(received, 1U);
  std::vector<std::byte> expected(memory.size());
  std::size_t from = 0;
  for (const Bytes piece : pieces) {
    std::copy_n(&message[from], piece.size(),
                &expected[static_cast<std::size_t>(piece.data() - memory.data())]);
    from += piece.size();
  }
  EXPECT_EQ(memory, expected);
}

TEST_F(RunArrival, AlsoOverABadNetwork) {
  network.conditions.loss = 0.03;
  network.conditions.duplicate = 0.03;
  network.conditions.jitter = 30us;
  exchange({60'000, 200'000, 64 * 1024, 30'000, 500'000});
  EXPECT_GT(b.counters().frames_duplicate, 0u);
}

TEST_F(RunArrival, DamagedFramesDropOnlyWhatStandsBehindThem) {
  network.conditions.corrupt = 0.02;
  exchange({60'000, 200'000, 300'000});
  EXPECT_GT(b.counters().bytes_checked_in_copy, 0u);
  EXPECT_GT(b.counters().refused_checksum + b.counters().refused_malformed, 0u);
}

}  // namespace
}  // namespace cluster::test
