// The rails of a flow, without a flow: which there are, what is learnt of them, whom a complaint concerns.
// How frames are spread over them is tried with whole flows (flow_rails_test.cc).
#include "multipath/path_manager.h"

#include <gtest/gtest.h>

#include "reliability/frame_body.h"
#include "support/fake_world.h"

namespace cluster::multipath {
namespace {

constexpr int kOurs = 1;
constexpr int kPeer = 2;

SocketAddress address(int network, int node) {
  const std::byte ip[] = {std::byte{10}, std::byte{0}, static_cast<std::byte>(network),
                          static_cast<std::byte>(node)};
  return SocketAddress::v4(ip, 5000);
}

link::Path way(int network, std::uint8_t link) { return {address(network, kPeer), {}, false, link}; }

struct PathManagerTest : testing::Test {
  /// All further rails, believed in.
  void join_both() {
    rails.join(addresses);
    for (const int network : {1, 2})
      rails.answered(Time{}, way(network, static_cast<std::uint8_t>(network)), true);
    ASSERT_EQ(rails.size(), 3u);
    ASSERT_TRUE(rails[1].validator.validated() && rails[2].validator.validated());
  }
  /// About the rail of that network.
  bool complaint(Duration at, int network) {
    const auto link = static_cast<std::uint8_t>(network);
    return rails.complaint(Time(at), {address(network, kPeer), Status::refused, link});
  }

  void send(Duration at, std::size_t rail) {
    const Sequence s = frames.next();
    const Sequence transmission{s.value + 1};
    frames.push(std::make_unique<reliability::FrameBody>(16));
    frames.sent(s, transmission, Time(at), static_cast<std::uint8_t>(rail));
    rails.sent(Time(at), rail, transmission, s, frames);
  }

  test::FakeLog log;
  const std::vector<multipath::Rail> own{
      {address(0, kOurs), 24, "eth0"}, {address(1, kOurs), 24, "eth1"}, {address(2, kOurs), 24, "eth2"}};
  const std::vector<SocketAddress> addresses{address(0, kPeer), address(1, kPeer), address(2, kPeer)};
  PathManager rails{own, way(0, 0), 64, log};
  reliability::SendWindow frames{64};
};

TEST_F(PathManagerTest, TheFirstIsBelievedInAndOthersAreAskedBeforeTheyAreUsed) {
  EXPECT_EQ(rails.path_to_challenge(Time(1ms)), std::nullopt);
  rails.join(addresses);
  ASSERT_EQ(rails.size(), 3u);
  EXPECT_FALSE(rails[1].validator.validated() || rails[2].validator.validated());
  EXPECT_EQ(rails.path_to_challenge(Time(1ms)), 1u);
  rails.asked(Time(1ms), 1);
  EXPECT_EQ(rails.path_to_challenge(Time(1ms)), 2u);
  rails.answered(Time{}, way(1, 1), true);
  EXPECT_TRUE(rails[1].validator.validated());
  EXPECT_FALSE(rails[2].validator.validated());
  rails.join(addresses);
  EXPECT_EQ(rails.size(), 3u) << "it takes effect once";
}

TEST_F(PathManagerTest, OtherAddressesAreTriedOnceThePairedOneHadTimeToAnswer) {
  rails.join(addresses);
  std::vector<bool> paired;
  for (int ask = 0; ask < 10; ++ask) {
    paired.push_back(rails.challenge_path(1).to == address(1, kPeer));
    rails.asked(Time(1ms), 1);
  }
  EXPECT_EQ(paired, (std::vector<bool>{true, true, true, true, true, false, true, false, true, true}))
      << "of three addresses in turn one is its own";
}

TEST_F(PathManagerTest, AnAddressThatThisSideHasTooIsNoWayToThePeer) {
  const std::vector<SocketAddress> shared{address(0, kPeer), address(1, kOurs), address(2, kPeer)};
  rails.join(shared);
  for (std::size_t i = 0; i < rails.size(); ++i) EXPECT_NE(rails[i].path.to, address(1, kOurs));
  for (int asks = 0; asks < 20; ++asks) {
    const Time now(Duration(2s) * asks);
    while (const auto rail = rails.path_to_challenge(now)) {
      EXPECT_NE(rails.challenge_path(*rail).to, address(1, kOurs));
      rails.asked(now, *rail);
    }
  }
}

TEST_F(PathManagerTest, AnAnswerFromAnotherAddressCorrectsTheGuess) {
  const std::vector<SocketAddress> crossed{address(0, kPeer), address(7, kPeer), address(8, kPeer)};
  rails.join(crossed);
  rails.answered(Time{}, {address(8, kPeer), {}, false, 1}, true);
  ASSERT_TRUE(rails[1].validator.validated());
  EXPECT_EQ(rails[1].path.to, address(8, kPeer));
  rails.answered(Time{}, {address(9, kPeer), {}, false, 2}, true);
  EXPECT_FALSE(rails[2].validator.validated()) << "of whom the peer has not spoken";
}

TEST_F(PathManagerTest, AKeepersWordCountsWhereThePeerHasBeenMet) {
  rails.join(addresses);
  rails.answered(Time{}, way(1, 1), false);
  EXPECT_FALSE(rails[1].validator.validated()) << "it may be somebody else's";
  EXPECT_TRUE(rails.validated_addresses().empty());
  rails.answered(Time{}, way(1, 1), true);
  EXPECT_TRUE(rails[1].validator.validated());
  ASSERT_EQ(rails.validated_addresses().size(), 1u);
  EXPECT_EQ(rails.validated_addresses()[0], address(1, kPeer));
  complaint(1ms, 1);
  rails.answered(Time{}, way(1, 1), false);
  EXPECT_TRUE(rails[1].validator.validated());
  rails.answered(Time{}, way(1, 1), true);
  EXPECT_EQ(rails.validated_addresses().size(), 1u);
}

TEST_F(PathManagerTest, UntilThePeerIsKnownEveryLinkIsTried) {
  for (const unsigned link : {1u, 2u, 0u, 1u, 0u, 2u}) {
    rails.try_next_rail();
    EXPECT_EQ(rails[0].path.link, link);
    EXPECT_EQ(rails[0].path.to, address(0, kPeer));
  }
  rails.learn(way(0, 2), true);
  EXPECT_EQ(rails[0].path.link, 2) << "there it came from";
}

TEST_F(PathManagerTest, AnswersTakeTheRailOfWhatIsOwedOne) {
  join_both();
  EXPECT_EQ(rails.reply().link, 0);
  EXPECT_FALSE(rails.reordering_expected());
  rails.learn(way(2, 2), true);
  EXPECT_EQ(rails.reply().link, 2);
  EXPECT_TRUE(rails.reordering_expected());
  rails.learn(way(1, 1), false);
  EXPECT_EQ(rails.reply().link, 2) << "a mere acknowledgement is answered by nobody";
  for (int frame = 0; frame < 100; ++frame) rails.learn(way(2, 2), true);
  EXPECT_FALSE(rails.reordering_expected());
}

TEST_F(PathManagerTest, TheHardwareAddressIsLearntForThatRailAlone) {
  join_both();
  link::Path from = way(1, 1);
  from.mac = {std::byte{2}};
  from.mac_known = true;
  rails.learn(from, false);
  EXPECT_TRUE(rails[1].path.mac_known);
  EXPECT_FALSE(rails[0].path.mac_known || rails[2].path.mac_known);
}

TEST_F(PathManagerTest, AComplaintAboutOneAddressIsThatRailsTroubleWhileOthersWork) {
  join_both();
  EXPECT_TRUE(complaint(1ms, 1));
  EXPECT_TRUE(rails[0].validator.validated() && !rails[1].validator.validated() &&
              rails[2].validator.validated());
  EXPECT_EQ(rails.path_to_challenge(Time(1ms)), 1u) << "asked at once";
  EXPECT_TRUE(complaint(1ms, 0));
  EXPECT_FALSE(complaint(1ms, 2)) << "the last one: it concerns the peer";
  rails.answered(Time{}, way(1, 1), true);
  EXPECT_TRUE(rails[1].validator.validated());
  EXPECT_TRUE(complaint(2ms, 2));
}

TEST_F(PathManagerTest, AComplaintConcernsTheLinkByWhichTheFramesLeft) {
  join_both();
  EXPECT_TRUE(rails.complaint(Time(1ms), {address(1, kPeer), Status::unreachable, 2}));
  EXPECT_TRUE(rails[0].validator.validated() && rails[1].validator.validated() &&
              rails[2].validator.validated());
}

TEST_F(PathManagerTest, WhoPairsOtherwiseIsAnsweredWhereItsFramesComeFrom) {
  join_both();
  const link::Path crossed{address(1, kPeer), {}, false, 0};
  rails.learn(crossed, true);
  ASSERT_EQ(rails.size(), 4u);
  EXPECT_EQ(rails.reply().to, crossed.to);
  EXPECT_EQ(rails.reply().link, crossed.link);
  EXPECT_FALSE(rails[3].validator.validated()) << "that it leads back is not shown";
  rails.learn(crossed, true);
  EXPECT_EQ(rails.size(), 4u);
  rails.learn({address(9, kPeer), {}, false, 0}, true);
  EXPECT_EQ(rails.size(), 4u) << "an address of which the peer has not spoken";
  EXPECT_EQ(rails.reply().to, crossed.to);
}

TEST_F(PathManagerTest, ThereIsALimitToTheWaysOfOnePeer) {
  std::vector<SocketAddress> many;
  for (int network = 0; network < static_cast<int>(multipath::kPathsMax); ++network) {
    many.push_back(address(network, kPeer));
  }
  rails.join(many);
  for (const SocketAddress& to : many) {
    for (const std::uint8_t link : {0, 1, 2}) rails.learn({to, {}, false, link}, true);
  }
  EXPECT_EQ(rails.size(), multipath::kPathsMax);
}

TEST_F(PathManagerTest, WhatGotNoAnswerGoesByNoWorseRail) {
  rails.join(addresses);
  EXPECT_EQ(rails.select_other(Time(1ms), 0, frames).rail, 0u) << "the others have never worked";
  rails.answered(Time{}, way(2, 2), true);
  EXPECT_EQ(rails.select_other(Time(1ms), 0, frames).rail, 2u);
  complaint(2ms, 2);
  EXPECT_EQ(rails.select_other(Time(3ms), 0, frames).rail, 0u);
  EXPECT_EQ(rails.select_other(Time(3ms), 2, frames).rail, 0u);
}

/// The one that is left fails, too, when late news of another shows that it is not the peer who is silent.
TEST_F(PathManagerTest, WhenNoneIsBelievedInEachThatHasEverWorkedGetsItsTurn) {
  join_both();
  send(1ms, 0);
  send(2ms, 2);
  complaint(3ms, 1);
  complaint(3ms, 2);
  ASSERT_TRUE(rails[0].validator.validated());
  wire::Ack second;
  second.count = 1;
  second.ranges[0] = {{1}, {2}};
  rails.word_begins(frames);
  frames.acknowledge({0}, &second,
                     [&](Sequence s, const reliability::Flight& flight) { rails.arrived(s, flight); });
  rails.word_ends(Time(4ms),
                  {.newest = {2}, .known_end = {2}, .next = {3}, .arrived = Time(4ms), .delay = 0ns});
  rails.detect(Time(4s), frames);
  for (std::size_t i = 0; i < 3; ++i) ASSERT_FALSE(rails[i].validator.validated()) << i;

  for (const std::size_t expected : {1u, 0u, 2u, 1u}) {
    const PathManager::Turn turn = rails.next(Time(4s), frames);
    EXPECT_EQ(turn.rail, expected) << "the one that was used the longest ago";
    EXPECT_GT(turn.frames, 0u);
    send(4s + frames.next().value * 1us, turn.rail);
  }
  rails[0].full = true;
  EXPECT_EQ(rails.next(Time(5s), frames).frames, 0u) << "its link has no room";
  rails.turn_begins();
  EXPECT_GT(rails.next(Time(5s), frames).frames, 0u);
  rails.answered(Time{}, way(2, 2), true);
  EXPECT_EQ(rails.next(Time(5s), frames).rail, 2u) << "and who answers has it to itself";
}

/// Found by the simulator (seed 1200007213): first frames on a far rail were repeated at the pace of a near
/// one.
TEST_F(PathManagerTest, SilenceOnARailThatIsNotMeasuredIsNotJudgedByTheOthers) {
  join_both();
  rails[0].reply_time.sample(10us);
  rails[2].reply_time.sample(20us);
  for (const std::uint8_t rail : {0, 1, 2}) {
    frames.push(std::make_unique<reliability::FrameBody>(16));
    frames.sent(frames.next(), {rail + 1u}, Time(1us), rail);
  }
  EXPECT_FALSE(rails.reply_time(frames).measured());
  rails[1].reply_time.sample(2ms);
  EXPECT_EQ(rails.reply_time(frames).smoothed(), 2ms);
}

TEST_F(PathManagerTest, LastingSilenceCostsTheWindowsOfThoseThatCarrySomething) {
  join_both();
  for (const std::uint8_t rail : {0, 2}) {
    frames.push(std::make_unique<reliability::FrameBody>(16));
    frames.sent(frames.next(), {rail + 1u}, Time(1us), rail);
  }
  rails.timed_out(frames);
  EXPECT_EQ(rails[0].congestion.window(), CongestionController::kMinimumWindow);
  EXPECT_EQ(rails[1].congestion.window(), CongestionController::kInitialWindow);
  EXPECT_EQ(rails[2].congestion.window(), CongestionController::kMinimumWindow);
}

/// What is known of a rail whose frames are never the newest holds the peer's absence.
TEST_F(PathManagerTest, ASlowRailIsNotMeasuredByAPeerThatWasAway) {
  join_both();
  const auto word = [&](Duration at, Duration delay) {  // of all that was sent
    rails.word_begins(frames);
    frames.acknowledge(frames.next(), nullptr,
                       [&](Sequence s, const reliability::Flight& flight) { rails.arrived(s, flight); });
    rails.word_ends(Time(at), {.newest = frames.next(),
                               .known_end = frames.next(),
                               .next = {frames.next().value + 1},
                               .arrived = Time(at),
                               .delay = delay});
  };
  for (const auto& [begin, delay] : {std::pair{1ms, 0us}, std::pair{200ms, 5000us}, std::pair{400ms, 10us}}) {
    send(begin, 1);
    send(begin + 1us, 0);
    word(begin + 300us + delay, delay);
    EXPECT_LT(rails[1].round_trip.smoothed(), 320us);
    EXPECT_GE(rails[1].round_trip.smoothed(), 300us);
    EXPECT_GE(rails[1].reply_time.latest(), 300us + delay);
  }
}

TEST_F(PathManagerTest, AComplaintAboutTheOnlyAddressIsThePeersTrouble) {
  EXPECT_FALSE(complaint(1ms, 0));
  EXPECT_FALSE(rails.complaint(Time(1ms), {address(0, kPeer), Status::refused, 1}))
      << "another link was tried";
  EXPECT_TRUE(rails[0].validator.validated());
}

TEST_F(PathManagerTest, QuestionsToThePeerGoRoundTheRailsThatHaveEverWorked) {
  rails.join(addresses);
  rails.answered(Time{}, way(2, 2), true);
  const std::uint8_t first = rails.next_validated().link;
  const std::uint8_t second = rails.next_validated().link;
  EXPECT_NE(first, second);
  EXPECT_EQ(first + second, 0 + 2);
  EXPECT_EQ(rails.next_validated().link, first);
}

TEST_F(PathManagerTest, WhoAsksSeesAllOfThem) {
  join_both();
  complaint(1ms, 1);
  const std::vector<PathStats> states = rails.state(frames);
  ASSERT_EQ(states.size(), 3u);
  for (std::size_t i = 0; i < states.size(); ++i) {
    EXPECT_EQ(states[i].link, i);
    EXPECT_EQ(states[i].to, addresses[i]);
    EXPECT_EQ(states[i].up, i != 1);
    EXPECT_GT(states[i].window, 0u);
  }
  EXPECT_GT(rails.footprint(), 3 * sizeof(PathState));
}

}  // namespace
}  // namespace cluster::multipath
