// The receive window alone: when it hands on each frame, which frames it keeps, and which it acknowledges
// beyond gaps.
#include "reliability/receive_window.h"

#include <gtest/gtest.h>

#include <string>

namespace cluster::reliability {
namespace {

using Arrival = ReceiveWindow::Arrival;

struct ReceiveWindowTest : testing::Test {
  ReceiveWindow window{64};
  std::uint32_t transmission = 0;

  /// Lets a frame arrive whose content says its sequence; answers what is handed on.
  std::string arrive(std::uint32_t s, bool ordered, Arrival wanted = Arrival::fresh) {
    const std::string text = std::to_string(s) + " ";
    const std::vector<std::byte> bytes(as_bytes(text.data(), text.size()).begin(),
                                       as_bytes(text.data(), text.size()).end());
    EXPECT_EQ(window.arrive({s}, {++transmission}, ordered, bytes), wanted);
    std::string handed;
    ConstBytes segments;
    while (window.next(segments))
      handed.append(reinterpret_cast<const char*>(segments.data()), segments.size());
    EXPECT_TRUE(window.all_handed_on());
    return handed;
  }
  std::string gaps() {
    wire::Ack ack;
    window.fill_ranges(ack);
    std::string text;
    for (std::size_t i = 0; i < ack.count; ++i) {
      text += std::to_string(ack.ranges[i].first.value) + "-" + std::to_string(ack.ranges[i].end.value) + " ";
    }
    return text;
  }
};

TEST_F(ReceiveWindowTest, OrderedFramesWaitForAllBeforeThem) {
  EXPECT_EQ(arrive(0, true), "0 ");
  EXPECT_EQ(arrive(2, true), "");
  EXPECT_EQ(arrive(3, false), "3 ");
  EXPECT_EQ(arrive(4, true), "");
  EXPECT_EQ(gaps(), "2-5 ");
  EXPECT_EQ(arrive(1, false), "1 2 4 ");
  EXPECT_EQ(gaps(), "");
  EXPECT_FALSE(window.has_gap());
  EXPECT_EQ(window.expected(), (Sequence{5}));
}

TEST_F(ReceiveWindowTest, ItsMemoryIsCountedHoweverMuchHasWaited) {
  constexpr std::uint32_t kBehind = 20;  // more than there are spare copies
  const std::vector<std::byte> frame(1000);
  const std::size_t least = window.footprint();
  const auto take = [&](std::uint32_t s) {
    EXPECT_EQ(window.arrive({s}, {++transmission}, true, frame), Arrival::fresh);
    for (ConstBytes segments; window.next(segments);) EXPECT_EQ(segments.size(), frame.size());
  };
  for (std::uint32_t round = 0; round < 50; ++round) {
    const std::uint32_t first = round * (kBehind + 1);
    for (std::uint32_t i = 1; i <= kBehind; ++i) take(first + i);
    EXPECT_GE(window.footprint(), least + kBehind * frame.size()) << round;
    take(first);
    EXPECT_LT(window.footprint(), least + kBehind * frame.size()) << round;
  }
}

TEST_F(ReceiveWindowTest, WhatIsHeldDoesNotCountAsArrivedNorWhatLiesBehindIt) {
  arrive(0, true);
  arrive(2, true);
  arrive(3, false);
  arrive(4, true);
  const std::string text = "1 ";
  const std::vector<std::byte> bytes(as_bytes(text.data(), text.size()).begin(),
                                     as_bytes(text.data(), text.size()).end());
  EXPECT_EQ(window.arrive({1}, {77}, true, bytes), Arrival::fresh);
  ConstBytes segments;
  ASSERT_TRUE(window.next(segments));
  window.hold(segments.subspan(1));
  EXPECT_TRUE(window.holding());
  EXPECT_FALSE(window.next(segments));
  EXPECT_EQ(window.expected(), (Sequence{1}));
  EXPECT_EQ(gaps(), "2-5 ");
  EXPECT_EQ(arrive(1, true, Arrival::held), "");
  EXPECT_EQ(arrive(5, false), "5 ") << "what matters in any order is not held up";
  EXPECT_EQ(arrive(6, true), "");
  EXPECT_EQ(window.held().size(), 1u);
  EXPECT_EQ(window.resume(), (TransmissionNumber{77}));
  std::string handed;
  while (window.next(segments))
    handed.append(reinterpret_cast<const char*>(segments.data()), segments.size());
  EXPECT_EQ(handed, " 2 4 6 ") << "the rest of it first";
  EXPECT_EQ(window.expected(), (Sequence{7}));
  EXPECT_EQ(gaps(), "");
  EXPECT_EQ(window.spurious(), 0u);
}

TEST_F(ReceiveWindowTest, AHeldFrameWithNothingBehindItLeavesNoGap) {
  arrive(0, true);
  const std::byte word[4] = {};
  EXPECT_EQ(window.arrive({1}, {1}, true, word), Arrival::fresh);
  ConstBytes segments;
  ASSERT_TRUE(window.next(segments));
  window.hold(segments);
  EXPECT_FALSE(window.has_gap());
  EXPECT_EQ(window.expected(), (Sequence{1}));
  window.resume();
  ASSERT_TRUE(window.next(segments));
  window.hold(segments);
  EXPECT_FALSE(window.has_gap());
  window.resume();
  ASSERT_TRUE(window.next(segments));
  EXPECT_EQ(segments.size(), 4u);
  EXPECT_FALSE(window.next(segments));
  EXPECT_EQ(arrive(2, true), "2 ");
}

TEST_F(ReceiveWindowTest, OnlyWhatHasItsTurnMayBeHeld) {
  const std::byte content{1};
  ConstBytes segments;
  window.arrive({1}, {0}, false, {&content, 1});
  ASSERT_TRUE(window.next(segments));
  EXPECT_FALSE(window.may_hold()) << "what lies before it is missing";
  window.arrive({0}, {1}, true, {&content, 1});
  ASSERT_TRUE(window.next(segments));
  EXPECT_TRUE(window.may_hold());
  window.hold(segments);
  EXPECT_FALSE(window.may_hold()) << "one at a time";
}

TEST_F(ReceiveWindowTest, DuplicatesAreRecognisedOnBothSidesOfTheGap) {
  arrive(0, true);
  arrive(2, true);
  arrive(0, true, Arrival::duplicate);
  arrive(2, true, Arrival::duplicate);
  EXPECT_EQ(window.spurious(), 2u);
}

TEST_F(ReceiveWindowTest, CopiesMadeByTheNetworkAreNotSpuriousRetransmissions) {
  const std::byte content{1};
  EXPECT_EQ(window.arrive({0}, {1}, false, {&content, 1}), Arrival::fresh);
  EXPECT_EQ(window.arrive({0}, {1}, false, {&content, 1}), Arrival::duplicate);
  EXPECT_EQ(window.spurious(), 0u);
  EXPECT_EQ(window.arrive({0}, {2}, false, {&content, 1}), Arrival::duplicate);
  EXPECT_EQ(window.spurious(), 1u);
}

TEST_F(ReceiveWindowTest, NothingBeyondTheWindow) {
  arrive(63, false);
  using Place = ReceiveWindow::Place;
  EXPECT_EQ(window.place_of({64}), Place::outside);
  EXPECT_EQ(window.place_of({0u - 64}), Place::within);
  arrive(0u - 64, false, Arrival::duplicate);
  EXPECT_EQ(window.place_of({0u - 65}), Place::late) << "no peer whose frames were acknowledged sends it";
  EXPECT_EQ(window.place_of({0xFFFF0000u}), Place::late);
  EXPECT_EQ(window.place_of({0xFFFEFFFFu}), Place::outside) << "too far behind to be an old one";
  arrive(0, false);
  arrive(64, false);
}

TEST_F(ReceiveWindowTest, AsManyRangesAsABlockTakesLowestFirst) {
  ReceiveWindow wide(256);
  const std::byte content{1};
  for (std::uint32_t s = 1; s < 200; s += 2) {
    wide.arrive({s}, {s}, false, {&content, 1});
    ConstBytes segments;
    while (wide.next(segments)) continue;
  }
  wire::Ack ack;
  wide.fill_ranges(ack);
  ASSERT_EQ(ack.count, wire::kAckRangesMax);
  EXPECT_EQ(ack.ranges[0], (wire::SequenceRange{{1}, {2}}));
  EXPECT_EQ(ack.ranges[31], (wire::SequenceRange{{63}, {64}}));
}

TEST_F(ReceiveWindowTest, GrowsForAGapAndForgetsNothing) {
  ReceiveWindow wide(1024);
  std::byte content{};
  const auto arrive_there = [&](std::uint32_t s) {
    content = static_cast<std::byte>(s);
    return wide.arrive({s}, {s + 1}, true, {&content, 1});
  };
  ConstBytes segments;
  std::vector<std::byte> handed;
  const auto take = [&] {
    while (wide.next(segments)) handed.insert(handed.end(), segments.begin(), segments.end());
  };
  for (const std::uint32_t s : {0u, 2u, 63u, 500u, 1000u}) {
    EXPECT_EQ(arrive_there(s), Arrival::fresh);
    take();
  }
  for (const std::uint32_t s : {2u, 63u, 500u}) EXPECT_EQ(arrive_there(s), Arrival::duplicate);
  EXPECT_EQ(wide.spurious(), 0u) << "all of them the same transmission";
  for (std::uint32_t s = 1; s < 1000; ++s) {
    arrive_there(s);
    take();
  }
  ASSERT_EQ(handed.size(), 1001u);
  for (std::size_t i = 0; i < handed.size(); ++i) ASSERT_EQ(handed[i], static_cast<std::byte>(i));
}

TEST_F(ReceiveWindowTest, RandomOrderHandsOnEverythingInOrderLapAfterLap) {
  std::uint32_t state = 12345;
  std::string handed;
  std::string wanted;
  for (std::uint32_t base = 0; base < 64 * 20; base += 64) {
    std::vector<std::uint32_t> order(64);
    for (std::uint32_t i = 0; i < 64; ++i) order[i] = base + i;
    for (std::uint32_t i = 63; i > 0; --i) {
      state = state * 1664525 + 1013904223;
      std::swap(order[i], order[(state >> 8) % (i + 1)]);
    }
    for (const std::uint32_t s : order) handed += arrive(s, true);
    for (std::uint32_t i = 0; i < 64; ++i) wanted += std::to_string(base + i) + " ";
  }
  EXPECT_EQ(handed, wanted);
}

TEST_F(ReceiveWindowTest, ARunOutsideOrWithSomethingOldIsNotTaken) {
  arrive(0, true);
  arrive(5, false);
  EXPECT_TRUE(window.takes_run({1}, 4, true));
  EXPECT_FALSE(window.takes_run({1}, 5, false)) << "5 is here";
  EXPECT_FALSE(window.takes_run({0}, 2, false)) << "0 was here";
  EXPECT_TRUE(window.takes_run({6}, 59, false));
  EXPECT_FALSE(window.takes_run({6}, 60, false)) << "it ends beyond the window";
  EXPECT_TRUE(window.takes_run({2}, 3, false));
  EXPECT_FALSE(window.takes_run({2}, 3, true)) << "ordered ones wait";
  arrive(1, true);
  window.arrive({2}, {50}, true, as_bytes("x", 1));
  ConstBytes segments;
  ASSERT_TRUE(window.next(segments));
  window.hold(segments);
  EXPECT_FALSE(window.takes_run({3}, 2, false)) << "something is held";
}

// A run leaves the same behind as its frames one by one, wherever it lies.
TEST_F(ReceiveWindowTest, ARunIsAsItsFrames) {
  ReceiveWindow singly{64};
  std::uint32_t state = 7;
  const auto random = [&](std::uint32_t below) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
  };
  const std::byte content{1};
  const auto drain = [](ReceiveWindow& one) {
    std::size_t handed = 0;
    for (ConstBytes segments; one.next(segments);) ++handed;
    return handed;
  };
  for (int i = 0; i < 3000; ++i) {
    const Sequence s = window.expected() + random(40);
    const std::uint32_t count = 1 + random(30);
    const bool ordered = random(4) == 0;
    transmission += 100;
    if (window.takes_run(s, count, ordered)) {
      window.arrive_run(s, {transmission}, count);
      const std::size_t handed = count + drain(window);
      std::size_t handed_singly = 0;
      for (std::uint32_t k = 0; k < count; ++k) {
        ASSERT_EQ(singly.arrive(s + k, {transmission + k}, ordered, {&content, 1}), Arrival::fresh);
        handed_singly += drain(singly);
      }
      ASSERT_EQ(handed, handed_singly);
    } else {
      const Arrival arrival = window.arrive(s, {transmission}, ordered, {&content, 1});
      ASSERT_EQ(singly.arrive(s, {transmission}, ordered, {&content, 1}), arrival);
      ASSERT_EQ(drain(window), drain(singly));
    }
    ASSERT_EQ(window.expected(), singly.expected());
    ASSERT_EQ(window.has_gap(), singly.has_gap());
    ASSERT_EQ(window.spurious(), singly.spurious());
    wire::Ack ack, ack_singly;
    window.fill_ranges(ack);
    singly.fill_ranges(ack_singly);
    ASSERT_EQ(ack.count, ack_singly.count);
    for (std::size_t k = 0; k < ack.count; ++k) ASSERT_EQ(ack.ranges[k], ack_singly.ranges[k]);
  }
  EXPECT_GT(window.expected().value, 1000u);
}

}  // namespace
}  // namespace cluster::reliability
