// When a stream queries its listeners, and when it retransmits its newest frame instead.
#include "group/sender_stream.h"

#include <gtest/gtest.h>

#include <array>
#include <new>
#include <vector>

#include "support/failing_memory.h"
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
  /// Lets time pass; records when the stream queries listeners and how often it sends each frame.
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

TEST_F(SenderStreamTest, FramesLeaveAsThePaceLetsThem) {
  const std::vector<std::byte> long_message(100'000);
  const ConstBytes slice = long_message;
  stream_.post({}, {&slice, 1}, slice.size(), true, Until::copied, 1);
  run(kBegun);
  EXPECT_GT(link_.frames.size(), 0u);
  EXPECT_LE(link_.frames.size(), Pace::kBurst * Pace::kBurstsLate);
}

/// The first burst has one frame, and the others have Pace::kBurst frames. So no later burst begins with a
/// multiple of kProbeInterval.
TEST_F(SenderStreamTest, WhereMulticastReachesNobodyItIsTriedNowAndThen) {
  const std::vector<std::byte> long_message(900 * Pace::kBurst);
  const ConstBytes slice = long_message;
  const auto transmit_all = [&] {
    for (int turn = 0; turn < 100 && !stream_.drained(); ++turn, now_ += 5ms) {
      stream_.transmit(now_, &link_, path_);
      stream_.on_status(now_, listener_, stream_.next(), stream_.next() + kStreamWindow, {}, false);
      carrier_.items.clear();
    }
  };
  post(Until::copied);
  transmit_all();
  for (unsigned i = 0; i < kUnheardMax; ++i)
    stream_.on_status(now_, listener_, stream_.next(), stream_.next() + kStreamWindow, {}, false);
  ASSERT_TRUE(listener_.by_unicast);
  link_.frames.clear();
  while (stream_.next() < 4 * kProbeInterval) {
    stream_.post({}, {&slice, 1}, slice.size(), true, Until::copied, 1);
    transmit_all();
  }
  EXPECT_GE(link_.frames.size(), 3u);
}

/// Listeners report it again, and the stream must not take it for a known loss.
TEST_F(SenderStreamTest, AReportForWhichThereIsNoMemoryIsTakenTheNextTime) {
  post(Until::copied);
  run(kBegun);
  std::size_t refused = 0;
  for (std::size_t allowed = 0; allowed < 2; ++allowed) {
    try {
      const test::FailingMemory memory(allowed, 1);
      stream_.on_nak(now_, listener_, 0, 1);
    } catch (const std::bad_alloc&) {
      ++refused;
    }
  }
  EXPECT_EQ(refused, 2u);
  stream_.on_nak(now_, listener_, 0, 1);
  run(now_ + 200us);
  EXPECT_EQ(carrier_.items.size() + link_.frames.size(), 2u);
}

/// Sends for 10 ms after a train of which the listener missed so many frames.
class SenderPaceTest : public SenderStreamTest {
 protected:
  std::size_t sent_after(std::uint64_t missed) {
    const std::vector<std::byte> long_message(900'000);
    const ConstBytes slice = long_message;
    stream_.post({}, {&slice, 1}, slice.size(), true, Until::copied, 1);
    for (; link_.frames.size() < Pace::kTrainFirst; now_ += 100us) stream_.transmit(now_, &link_, path_);
    if (missed > 0) stream_.on_nak(now_, listener_, 0, missed);
    stream_.on_status(now_, listener_, Pace::kTrainFirst, kStreamWindow, {}, true);
    const std::size_t before = link_.frames.size();
    run(now_ + 10ms);
    return link_.frames.size() - before;
  }
};

TEST_F(SenderPaceTest, GoesOnFasterWhereNothingIsMissed) { EXPECT_GT(sent_after(0), 200u); }
TEST_F(SenderPaceTest, IsSlowedByWhatAListenerMisses) { EXPECT_LT(sent_after(Pace::kTrainFirst / 2), 200u); }

/// Four listeners, and one frame that some of them miss.
class SenderRepairTest : public SenderStreamTest {
 protected:
  SenderRepairTest() {
    for (std::size_t i = 0; i < others_.size(); ++i) {
      others_[i].carrier = &carriers_[i];
      stream_.add(others_[i]);
    }
    post(Until::copied);
    run(kBegun);
  }
  void miss(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) stream_.on_nak(now_, others_[i], 0, 1);
    run(now_ + 200us);
  }
  std::size_t by_unicast() const {
    std::size_t count = 0;
    for (const test::QueueCarrier& carrier : carriers_) {
      for (const auto& item : carrier.items)
        count += item.segment.kind == wire::SegmentKind::group_repair ? 1 : 0;
    }
    return count;
  }

  std::array<test::QueueCarrier, 3> carriers_;
  std::array<Listener, 3> others_;
};

TEST_F(SenderRepairTest, GoesToTheOneThatMissesTheFrame) {
  miss(1);
  EXPECT_EQ(by_unicast(), 1u);
  EXPECT_EQ(link_.frames.size(), 1u);
}

TEST_F(SenderRepairTest, GoesToAllWhereManyMissTheFrame) {
  miss(kRepairMany);
  EXPECT_EQ(by_unicast(), 0u);
  EXPECT_EQ(link_.frames.size(), 2u);
}

}  // namespace
}  // namespace cluster::group
