// Messages of a stream share frames. A single message does not wait, and no message waits unless a thread
// will send it.
#include "transport/packing_policy.h"

#include <gtest/gtest.h>

#include <optional>

#include "support/node.h"

namespace cluster::transport {
namespace {

using test::kA;
using test::kB;
using test::Node;

class PackingPolicyTest : public test::EngineTest {
 protected:
  void SetUp() override {
    a->send();
    pass(*a, b);
  }
  /// So many messages, with nothing in between; how many frames left meanwhile.
  std::uint64_t frames_of(int messages) {
    const std::uint64_t before = a->counters().frames_sent;
    for (int i = 0; i < messages; ++i) a->send();
    return a->counters().frames_sent - before;
  }
  /// Enough small bursts for the progress thread to notice.
  void begin_stream() {
    for (std::uint32_t wishes = 0; wishes < PackingPolicy::kStreamMin; wishes += 7) {
      frames_of(8);
      pass(*a, b);
    }
    EXPECT_EQ(a->engine.run_in_background().after, PackingPolicy::kStreamInterval);
    pass(*a, b);
  }
  void expect_everything_arrived() {
    pass(*a, b);
    EXPECT_EQ(b.engine.unexpected_messages(), a->word);
  }

  std::optional<Node> a{std::in_place, network, kA, kB, 1000};
  Node b{network, kB, kA, 2000};
};

TEST_F(PackingPolicyTest, EachLeavesAtOnceWithoutAStream) {
  EXPECT_EQ(frames_of(10), 10u);
  expect_everything_arrived();
}

TEST_F(PackingPolicyTest, InAStreamTheFirstLeavesAndTheOthersShareAFrame) {
  begin_stream();
  EXPECT_EQ(frames_of(10), 1u);
  a->engine.poll();
  EXPECT_EQ(frames_of(0), 0u);
  const std::uint64_t before = b.counters().frames_received;
  pass(*a, b);
  EXPECT_EQ(b.counters().frames_received - before, 2u);
  expect_everything_arrived();
}

TEST_F(PackingPolicyTest, AStreamCallsTheProgressThreadOnce) {
  int calls = 0;
  a->engine.set_progress_call([&calls] { ++calls; });
  frames_of(PackingPolicy::kStreamMin);  // the first could not have waited
  EXPECT_EQ(calls, 0);
  frames_of(1);
  EXPECT_EQ(calls, 1);
  frames_of(3 * PackingPolicy::kStreamMin);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(a->engine.run_in_background().after, PackingPolicy::kStreamInterval);
  pass(*a, b);
  EXPECT_EQ(frames_of(10), 1u);
  expect_everything_arrived();
}

TEST_F(PackingPolicyTest, AMessageAloneNeverWaits) {
  begin_stream();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(frames_of(1), 1u);
    pass(*a, b);
  }
  expect_everything_arrived();
}

TEST_F(PackingPolicyTest, AFullFrameLeaves) {
  begin_stream();
  const std::uint64_t frames = frames_of(300);
  EXPECT_GE(frames, 3u);
  EXPECT_LE(frames, 5u);
  expect_everything_arrived();
}

TEST_F(PackingPolicyTest, TheProgressThreadSendsWhatTheApplicationForgot) {
  begin_stream();
  a->engine.run_in_background();
  EXPECT_EQ(frames_of(2), 1u);
  const std::uint64_t before = a->counters().frames_sent;
  a->engine.run_in_background();
  EXPECT_EQ(a->counters().frames_sent - before, 1u);
  expect_everything_arrived();
}

TEST_F(PackingPolicyTest, WhatWaitsLeavesBeforeItsEndpointCloses) {
  begin_stream();
  EXPECT_EQ(frames_of(3), 1u);
  const std::uint64_t sent = a->word;
  a.reset();
  pass(b);
  EXPECT_EQ(b.engine.unexpected_messages(), sent);
}

TEST_F(PackingPolicyTest, AStreamEnds) {
  begin_stream();
  os::NextWake rest{PackingPolicy::kStreamInterval};
  for (std::uint32_t i = 0; i < PackingPolicy::kRunsPerReview; ++i) {
    EXPECT_EQ(rest.after, PackingPolicy::kStreamInterval);
    rest = a->engine.run_in_background();
  }
  EXPECT_GT(rest.after, PackingPolicy::kStreamInterval);
  EXPECT_EQ(frames_of(2), 2u);
  expect_everything_arrived();
}

TEST_F(PackingPolicyTest, FiMoreSharesAFrameWithoutAStream) {
  const std::uint64_t before = a->counters().frames_sent;
  for (int i = 0; i < 5; ++i) {
    const ConstBytes slice = as_bytes(&a->word, sizeof a->word);
    ++a->word;
    EXPECT_EQ(a->engine.send({.slices = {&slice, 1}, .length = sizeof a->word, .more = i < 4}), Status::ok);
  }
  EXPECT_EQ(a->counters().frames_sent - before, 1u);
  expect_everything_arrived();
}

}  // namespace
}  // namespace cluster::transport
