// When a stream asks its listeners, and when it sends its newest frame again instead.
#include "group/sender_stream.h"

#include <gtest/gtest.h>

#include <array>

#include "support/queue_carrier.h"
#include "support/recording_link.h"

namespace cluster::group {
namespace {

constexpr std::uint64_t kStreamKey = 77;
constexpr std::uint32_t kOwnStream = 5;
constexpr Time kBegun{1s};

class SenderStreamTest : public ::testing::Test {
 protected:
  SenderStreamTest() {
    listener_.carrier = &carrier_;
    stream_.add(listener_);
  }

  void post(Until until) {
    const ConstBytes slice = payload_;
    stream_.post({}, {&slice, 1}, slice.size(), true, until, 1);
  }
  /// Lets time pass, and notes when listeners are asked and how often which frame has left.
  void run(Time until) {
    for (; now_ <= until; now_ += 100us) {
      stream_.transmit(now_, &link_, path_);
      if (!carrier_.items.empty() && asked_ == kNever) asked_ = now_;
    }
  }
  Time now_ = kBegun;
  Time asked_ = kNever;
  std::array<std::byte, 100> payload_{};
  test::QueueCarrier carrier_;
  test::RecordingLink link_;
  link::Path path_;
  Listener listener_;
  SenderStream stream_{{kOwnStream, kStreamKey, 1}, 1000};
};

TEST_F(SenderStreamTest, WhereNoMessageWaitsTheNewestFrameLeavesAgainAndListenersAreAskedLate) {
  post(Until::copied);
  run(kBegun + kRepeatNewest / 2);
  ASSERT_EQ(link_.frames.size(), 1u);
  run(kBegun + kAskIdle - 1ms);
  ASSERT_EQ(link_.frames.size(), 2u);
  EXPECT_EQ(link_.frames[0], link_.frames[1]);
  EXPECT_EQ(asked_, kNever);
  run(kBegun + 2 * kAskIdle);
  EXPECT_NE(asked_, kNever);
  EXPECT_EQ(link_.frames.size(), 2u);
}

TEST_F(SenderStreamTest, WhatFollowsShowsThatAFrameIsMissing) {
  post(Until::copied);
  run(kBegun + kRepeatNewest / 2);
  post(Until::copied);
  run(kBegun + kRepeatNewest + 200us);
  EXPECT_EQ(link_.frames.size(), 2u);
}

TEST_F(SenderStreamTest, NothingIsSentAgainThatAllHave) {
  post(Until::copied);
  run(kBegun + kRepeatNewest / 2);
  stream_.on_status(now_, listener_, 1, 1 + kStreamWindow, {}, true);
  run(kBegun + 2 * kAskIdle);
  EXPECT_EQ(link_.frames.size(), 1u);
  EXPECT_EQ(asked_, kNever);
}

TEST_F(SenderStreamTest, ListenersAreAskedSoonWhereAMessageWaits) {
  post(Until::arrived);
  run(kBegun + kAskIdle / 2);
  EXPECT_LE(asked_, kBegun + kAskIdle / 2);
  EXPECT_EQ(link_.frames.size(), 1u);
}

TEST_F(SenderStreamTest, OneThatEndsAsksAtOnce) {
  post(Until::copied);
  run(kBegun);
  stream_.end();
  run(kBegun + 200us);
  EXPECT_NE(asked_, kNever);
}

}  // namespace
}  // namespace cluster::group
