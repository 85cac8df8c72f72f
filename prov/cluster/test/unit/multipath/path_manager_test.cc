// The paths of a flow, without a flow: which exist, what it learns about them, which path an error concerns.
// How frames are spread over them is tested with whole flows (reliability/flow_multipath_test.cc).
#include <algorithm>

#include "unit/multipath/path_manager_fixture.h"

namespace cluster::multipath {
namespace {

TEST_F(PathManagerTest, EachPathLearnsOfItsAcknowledgedFramesWithTheAcknowledgement) {
  validate_both();
  for (const std::size_t path : {0u, 0u, 1u, 0u}) send(1ms, path);
  const auto in_flight = [&](std::size_t path) { return paths[path].recovery.losses().in_flight(); };
  const auto arrived = [&](std::uint32_t frame) {
    paths.on_frames_acked(sent[frame].path, {{frame}, {frame + 1}, sent[frame].at, true});
    sent[frame].in_flight = false;
  };
  arrived(0);
  arrived(1);
  EXPECT_EQ(in_flight(0), 3u) << "another may continue them";
  arrived(2);
  EXPECT_EQ(in_flight(0), 1u);
  arrived(3);
  EXPECT_EQ(in_flight(1), 0u);
  EXPECT_EQ(in_flight(0), 1u);
  acknowledge(2ms, {3});
  EXPECT_EQ(in_flight(0), 0u);
}

TEST_F(PathManagerTest, TheFirstIsValidatedAndOthersAreChallengedBeforeTheyAreUsed) {
  EXPECT_FALSE(paths.challenge_due(Time(1ms)));
  paths.join(addresses);
  ASSERT_EQ(paths.size(), 3u);
  EXPECT_FALSE(validated(1) || validated(2));
  EXPECT_EQ(due(Time(1ms)), 1u);
  paths.on_challenge_sent(Time(1ms), 1);
  EXPECT_EQ(due(Time(1ms)), 2u);
  paths.on_response(Time{}, Time{}, way(1, 1), true);
  EXPECT_TRUE(validated(1));
  EXPECT_FALSE(validated(2));
  paths.join(addresses);
  EXPECT_EQ(paths.size(), 3u) << "it takes effect once";
}

TEST_F(PathManagerTest, OtherAddressesAreTriedOnceThePairedOneHadTimeToAnswer) {
  paths.join(addresses);
  std::vector<bool> paired;
  for (int ask = 0; ask < 10; ++ask) {
    const Time now(Duration(2s) * ask);
    const auto challenge = paths.challenge_due(now);
    ASSERT_TRUE(challenge && challenge->path == 1);
    paired.push_back(challenge->to.to == address(1, kPeer));
    paths.on_challenge_sent(now, 1);
  }
  EXPECT_EQ(paired, (std::vector<bool>{true, true, true, true, true, false, true, false, true, true}))
      << "of three addresses in turn one is its own";
}

TEST_F(PathManagerTest, AnAddressThatThisSideHasTooIsNoPath) {
  const std::vector<SocketAddress> shared{address(0, kPeer), address(1, kOurs), address(2, kPeer)};
  paths.join(shared);
  for (std::size_t i = 0; i < paths.size(); ++i) EXPECT_NE(paths[i].address.to, address(1, kOurs));
  for (int asks = 0; asks < 20; ++asks) {
    const Time now(Duration(2s) * asks);
    while (const auto challenge = paths.challenge_due(now)) {
      EXPECT_NE(challenge->to.to, address(1, kOurs));
      paths.on_challenge_sent(now, challenge->path);
    }
  }
}

TEST_F(PathManagerTest, AnAnswerFromAnotherAddressCorrectsTheGuess) {
  const std::vector<SocketAddress> crossed{address(0, kPeer), address(7, kPeer), address(8, kPeer)};
  paths.join(crossed);
  paths.on_response(Time{}, Time{}, {address(8, kPeer), {}, false, 1}, true);
  ASSERT_TRUE(validated(1));
  EXPECT_EQ(paths[1].address.to, address(8, kPeer));
  paths.on_response(Time{}, Time{}, {address(9, kPeer), {}, false, 2}, true);
  EXPECT_FALSE(validated(2)) << "an address that the peer has not listed";
}

TEST_F(PathManagerTest, TheHostsAnswerCountsOnlyForAPathThatWorkedBefore) {
  paths.join(addresses);
  paths.on_response(Time{}, Time{}, way(1, 1), false);
  EXPECT_FALSE(validated(1)) << "every host answers";
  EXPECT_TRUE(paths.validated_addresses().empty());
  paths.on_response(Time{}, Time{}, way(1, 1), true);
  EXPECT_TRUE(validated(1));
  ASSERT_EQ(paths.validated_addresses().size(), 1u);
  EXPECT_EQ(paths.validated_addresses()[0], address(1, kPeer));
  path_error(1ms, 1);
  paths.on_response(Time(2ms), Time(2ms), way(1, 1), false);
  EXPECT_TRUE(validated(1));
  paths.on_response(Time(2ms), Time(2ms), way(1, 1), true);
  EXPECT_EQ(paths.validated_addresses().size(), 1u);
}

TEST_F(PathManagerTest, UntilThePeerIsKnownEveryRailIsTried) {
  for (const unsigned link : {1u, 2u, 0u, 1u, 0u, 2u}) {
    paths.try_next_rail();
    EXPECT_EQ(paths[0].address.link, link);
    EXPECT_EQ(paths[0].address.to, address(0, kPeer));
  }
  paths.learn(way(0, 2), true);
  EXPECT_EQ(paths[0].address.link, 2) << "there it came from";
}

TEST_F(PathManagerTest, AnAcknowledgementTakesThePathOfTheLastArrivalThatIsOwedOne) {
  validate_both();
  EXPECT_EQ(paths.reply_path().link, 0);
  EXPECT_FALSE(paths.reordering_expected());
  paths.learn(way(2, 2), true);
  EXPECT_EQ(paths.reply_path().link, 2);
  EXPECT_TRUE(paths.reordering_expected());
  paths.learn(way(1, 1), false);
  EXPECT_EQ(paths.reply_path().link, 2) << "a bare acknowledgement is not answered";
  for (int frame = 0; frame < 100; ++frame) paths.learn(way(2, 2), true);
  EXPECT_FALSE(paths.reordering_expected());
}

TEST_F(PathManagerTest, TheHardwareAddressIsLearntForThatPathAlone) {
  validate_both();
  link::Path from = way(1, 1);
  from.mac = {std::byte{2}};
  from.mac_known = true;
  paths.learn(from, false);
  EXPECT_TRUE(paths[1].address.mac_known);
  EXPECT_FALSE(paths[0].address.mac_known || paths[2].address.mac_known);
}

/// The frames of the peer come by one router, and ours must take another one.
TEST_F(PathManagerTest, ARouterThatLosesOurFramesTwiceIsLeftToTheKernelsRoutes) {
  const SocketAddress peer = address(9, kPeer);
  PathManager routed(own, {peer, {}, false, 0}, 64, log);
  const link::Path from{peer, {std::byte{2}}, true, 0};
  for (int failure = 0; failure < 2; ++failure) {
    routed.learn(from, true);
    EXPECT_TRUE(routed[0].address.mac_known) << failure;
    routed.on_persistent_timeout();
    EXPECT_FALSE(routed[0].address.mac_known) << failure;
  }
  routed.learn(from, true);
  EXPECT_FALSE(routed[0].address.mac_known);
  EXPECT_EQ(routed[0].address.doubts, 0) << "the peer has been heard";
}

TEST_F(PathManagerTest, AHardwareAddressInThisNetworkIsLearntAgainAfterEachTimeout) {
  link::Path from = way(0, 0);
  from.mac = {std::byte{2}};
  from.mac_known = true;
  for (int failure = 0; failure < 5; ++failure) {
    paths.learn(from, true);
    EXPECT_TRUE(paths[0].address.mac_known) << failure;
    paths.on_persistent_timeout();
  }
}

TEST_F(PathManagerTest, APathErrorFailsThatPathWhileOthersWork) {
  validate_both();
  EXPECT_TRUE(path_error(1ms, 1));
  EXPECT_TRUE(validated(0) && !validated(1) && validated(2));
  EXPECT_EQ(due(Time(1ms)), 1u) << "challenged at once";
  EXPECT_TRUE(path_error(1ms, 0));
  EXPECT_FALSE(path_error(1ms, 2)) << "the last one: it concerns the peer";
  paths.on_response(Time(2ms), Time(2ms), way(1, 1), true);
  EXPECT_TRUE(validated(1));
  EXPECT_TRUE(path_error(2ms, 2));
}

/// Found by the simulator (flooder, seed 1089614181105592743): the last path was cut, and it alone reported
/// nothing.
TEST_F(PathManagerTest, APortThatIsClosedOnAPathThatHasWorkedConcernsThePeer) {
  paths.join(addresses);
  paths.on_response(Time{}, Time{}, way(1, 1), true);
  EXPECT_TRUE(path_error(1ms, 2, Status::refused))
      << "it has never led to the peer: perhaps it leads to another host";
  EXPECT_FALSE(path_error(1ms, 1, Status::refused));
  EXPECT_FALSE(validated(1)) << "and it carries nothing until it has answered";
  EXPECT_FALSE(path_error(2ms, 1, Status::refused)) << "again";
  EXPECT_TRUE(validated(0));
}

TEST_F(PathManagerTest, APathErrorConcernsTheLinkByWhichTheFramesLeft) {
  validate_both();
  EXPECT_TRUE(paths.on_path_error(Time(1ms), {address(1, kPeer), Status::unreachable, 2}));
  EXPECT_TRUE(validated(0) && validated(1) && validated(2));
}

TEST_F(PathManagerTest, APeerThatPairsOtherwiseIsAnsweredWhereItsFramesComeFrom) {
  validate_both();
  const link::Path crossed{address(1, kPeer), {}, false, 0};
  paths.learn(crossed, true);
  ASSERT_EQ(paths.size(), 4u);
  EXPECT_EQ(paths.reply_path().to, crossed.to);
  EXPECT_EQ(paths.reply_path().link, crossed.link);
  EXPECT_FALSE(validated(3)) << "it is not shown that it leads back";
  paths.learn(crossed, true);
  EXPECT_EQ(paths.size(), 4u);
  paths.learn({address(9, kPeer), {}, false, 0}, true);
  EXPECT_EQ(paths.size(), 4u) << "an address that the peer has not listed";
  EXPECT_EQ(paths.reply_path().to, crossed.to);
}

TEST_F(PathManagerTest, ThePathsToOnePeerAreLimited) {
  std::vector<SocketAddress> many;
  for (int network = 0; network < static_cast<int>(multipath::kPathsMax); ++network) {
    many.push_back(address(network, kPeer));
  }
  paths.join(many);
  for (const SocketAddress& to : many) {
    for (const std::uint8_t link : {0, 1, 2}) paths.learn({to, {}, false, link}, true);
  }
  EXPECT_EQ(paths.size(), multipath::kPathsMax);
}

TEST_F(PathManagerTest, AnUnansweredFrameTakesNoWorsePath) {
  paths.join(addresses);
  EXPECT_EQ(paths.select_other(Time(1ms), 0).path, 0u) << "the others have never worked";
  paths.on_response(Time{}, Time{}, way(2, 2), true);
  EXPECT_EQ(paths.select_other(Time(1ms), 0).path, 2u);
  path_error(2ms, 2);
  EXPECT_EQ(paths.select_other(Time(3ms), 0).path, 0u);
  EXPECT_EQ(paths.select_other(Time(3ms), 2).path, 0u);
}

/// The last path fails too when a late acknowledgement on another shows that the peer answers.
TEST_F(PathManagerTest, WhileNoneIsValidatedEachThatHasEverBeenGetsItsTurn) {
  validate_both();
  send(1ms, 0);
  send(2ms, 2);
  path_error(3ms, 1);
  path_error(3ms, 2);
  ASSERT_TRUE(validated(0));
  acknowledge(4ms, {1});
  EXPECT_EQ(detect(4s), (std::vector<Sequence>{{0}}));
  for (std::size_t i = 0; i < 3; ++i) ASSERT_FALSE(validated(i)) << i;

  for (const std::size_t expected : {1u, 0u, 2u, 1u}) {
    const PathManager::Grant grant = paths.select(Time(4s));
    EXPECT_EQ(grant.path, expected) << "the one that was used the longest ago";
    EXPECT_GT(grant.frames, 0u);
    send(4s + sent.size() * 1us, grant.path);
  }
  paths.on_link_full(0);
  EXPECT_EQ(paths.select(Time(5s)).frames, 0u) << "its link is full";
  paths.begin_turn();
  EXPECT_GT(paths.select(Time(5s)).frames, 0u);
  paths.on_response(Time(5s), Time(5s), way(2, 2), true);
  EXPECT_EQ(paths.select(Time(5s)).path, 2u) << "the only validated one";
}

/// Found by the simulator (seed 1200007213): the first frames on a slow path were retransmitted at the
/// pace of a fast one.
TEST_F(PathManagerTest, ATimeoutOnAPathThatIsNotMeasuredIsNotJudgedByTheOthers) {
  validate_both();
  paths[0].recovery.sample(Time{}, 10us, std::nullopt);
  paths[2].recovery.sample(Time{}, 20us, std::nullopt);
  for (const std::uint8_t rail : {0, 1, 2}) {
    send(1us, rail);
  }
  EXPECT_FALSE(paths.reply_time().measured());
  paths[1].recovery.sample(Time{}, 2ms, std::nullopt);
  EXPECT_EQ(paths.reply_time().smoothed(), 2ms);
}

TEST_F(PathManagerTest, APersistentTimeoutReducesTheWindowsOfPathsWithFramesInFlight) {
  validate_both();
  for (const std::uint8_t rail : {0, 2}) {
    send(1us, rail);
  }
  paths.on_persistent_timeout();
  EXPECT_EQ(paths[0].recovery.congestion().window(), CongestionController::kMinimumWindow);
  EXPECT_EQ(paths[1].recovery.congestion().window(), CongestionController::kInitialWindow);
  EXPECT_EQ(paths[2].recovery.congestion().window(), CongestionController::kMinimumWindow);
}

/// The samples of a path whose frames are never the newest include the delay of the acknowledgement.
TEST_F(PathManagerTest, ASlowPathIsNotMeasuredByTheHostDelayOfThePeer) {
  validate_both();
  for (const auto& [begin, delay] : {std::pair{1ms, 0us}, std::pair{200ms, 5000us}, std::pair{400ms, 10us}}) {
    send(begin, 1);
    send(begin + 1us, 0);
    const auto last = static_cast<std::uint32_t>(sent.size() - 1);
    acknowledge(begin + 300us + delay, {last - 1, last}, delay);
    EXPECT_LT(paths[1].recovery.network_rtt().smoothed(), 320us);
    EXPECT_GE(paths[1].recovery.network_rtt().smoothed(), 300us);
    EXPECT_GE(paths[1].recovery.reply_time().latest(), 300us + delay);
  }
}

TEST_F(PathManagerTest, APathErrorAboutTheOnlyPathConcernsThePeer) {
  EXPECT_FALSE(path_error(1ms, 0));
  EXPECT_FALSE(paths.on_path_error(Time(1ms), {address(0, kPeer), Status::refused, 1}))
      << "another link was tried";
  EXPECT_TRUE(validated(0));
}

TEST_F(PathManagerTest, ASpuriousRetransmissionConcernsThePathThatHadCarriedTheFrame) {
  validate_both();
  const auto reorder_window = [&](std::size_t path) {
    return paths[path].recovery.losses().reorder_window(paths[path].recovery.reply_time());
  };
  for (const std::size_t path : {1u, 2u}) paths[path].recovery.sample(Time{}, 100us, 100us);
  paths[1].recovery.on_sent(Time(1ms), {0}, {1});
  paths[2].recovery.on_sent(Time(1ms), {1}, {2});
  paths.on_retransmit(1, {1}, {3}, false);
  paths[2].recovery.on_sent(Time(2ms), {0}, {3});
  paths.on_retransmit(2, {2}, {4}, false);
  paths[1].recovery.on_sent(Time(2ms), {1}, {4});
  ASSERT_EQ(reorder_window(1), 25us);
  paths.on_ack(Time(2ms + 100us), {.largest_acked = {3},
                                   .known_end = {0},
                                   .next = {5},
                                   .arrived = Time(2ms + 100us),
                                   .delay = 0ns,
                                   .spurious = 1});
  EXPECT_GT(reorder_window(1), 25us) << "the repetition of its frame was spurious";
  EXPECT_EQ(reorder_window(2), 25us) << "that of its frame has not arrived yet";
}

TEST_F(PathManagerTest, WhatWasNotFoundLostDoesNotWidenTheReorderWindow) {
  const PathRecovery& path = paths[0].recovery;
  paths[0].recovery.sample(Time{}, 100us, 100us);
  std::uint32_t largest = 1;
  const auto report_spurious = [&] {
    const Time now = Time(largest * 1ms);
    paths.on_ack(now, {.largest_acked = {largest},
                       .known_end = {0},
                       .next = {largest + 1},
                       .arrived = now,
                       .delay = 0ns,
                       .spurious = 1});
    ++largest;
    return path.losses().reorder_window(path.reply_time()) > path.reply_time().smoothed() / 4;
  };
  paths.on_zero_window_probe({1});
  EXPECT_FALSE(report_spurious());
  paths.on_retransmit(0, {1}, {2}, true);
  EXPECT_FALSE(report_spurious());
  paths.on_retransmit(0, {2}, {3}, false);
  EXPECT_TRUE(report_spurious());
}

/// One of four is more than a policer may take.
TEST(PathRecoveryTest, ALostPmtuProbeDoesNotNarrowTheWindow) {
  for (const std::uint32_t pmtu_probe : {1u, 99u}) {
    PathRecovery path(64);
    const std::size_t before = path.congestion().window();
    Time now(1ms);
    std::uint32_t sent = 0;
    const auto send = [&] { path.on_sent(now, {sent}, {sent + 1}), ++sent; };
    const auto acknowledge = [&](std::uint32_t frame) {
      path.on_frame_acked({{frame}, {frame + 1}, now, true});
      now += 100us;
      path.on_ack(now,
                  {.largest_acked = {frame + 1},
                   .known_end = {frame},
                   .next = {sent + 1},
                   .arrived = now,
                   .delay = 0ns},
                  {true, false, false});
    };
    send();
    acknowledge(0);
    for (int i = 0; i < 4; ++i) send();
    acknowledge(2);
    std::vector<Sequence> lost;
    now += 10ms;
    path.detect_losses(now, lost, Sequence{pmtu_probe});
    ASSERT_EQ(lost, std::vector<Sequence>{{1}});
    for (const std::uint32_t frame : {3u, 4u}) acknowledge(frame);
    for (const std::uint32_t frame : {5u, 6u}) send(), acknowledge(frame);
    if (pmtu_probe == 1) {
      EXPECT_EQ(path.congestion().window(), before);
    } else {
      EXPECT_LT(path.congestion().window(), before);
    }
  }
}

TEST_F(PathManagerTest, KeepAlivesTakeNoPathThatHasFailedWhileAnotherIsValidated) {
  validate_both();
  ASSERT_TRUE(path_error(1ms, 1));
  for (int i = 0; i < 6; ++i) EXPECT_NE(paths.next_validated().link, 1u);
  for (const std::size_t path : {0u, 2u}) paths[path].validator.fail(Time(2ms));
  std::vector<unsigned> links;
  for (int i = 0; i < 3; ++i) links.push_back(paths.next_validated().link);
  std::sort(links.begin(), links.end());
  EXPECT_EQ(links, (std::vector<unsigned>{0, 1, 2})) << "none is validated: all that have worked";
}

TEST_F(PathManagerTest, KeepAlivesTakeTheValidatedPathsInTurn) {
  paths.join(addresses);
  paths.on_response(Time{}, Time{}, way(2, 2), true);
  const std::uint8_t first = paths.next_validated().link;
  const std::uint8_t second = paths.next_validated().link;
  EXPECT_NE(first, second);
  EXPECT_EQ(first + second, 0 + 2);
  EXPECT_EQ(paths.next_validated().link, first);
}

/// Found by the simulator (siege): all challenges left by the rail that was tried last, which the peer does
/// not have.
TEST_F(PathManagerTest, APeerThatHasNotAnsweredIsAskedOverItsOwnRailAsWell) {
  paths.try_next_rail();
  ASSERT_NE(paths[0].address.link, 0);
  const std::uint8_t tried = paths[0].address.link;
  EXPECT_EQ(paths.keep_alive_path(false).link, 0);
  EXPECT_EQ(paths.keep_alive_path(false).link, tried);
  EXPECT_EQ(paths.keep_alive_path(false).link, 0);
  EXPECT_EQ(paths.keep_alive_path(false).to, address(0, kPeer));
  EXPECT_EQ(paths.keep_alive_path(true).link, tried) << "it has answered there";
}

TEST_F(PathManagerTest, StatsShowAllPaths) {
  validate_both();
  path_error(1ms, 1);
  const std::vector<PathStats> states = paths.stats();
  ASSERT_EQ(states.size(), 3u);
  for (std::size_t i = 0; i < states.size(); ++i) {
    EXPECT_EQ(states[i].link, i);
    EXPECT_EQ(states[i].to, addresses[i]);
    EXPECT_EQ(states[i].up, i != 1);
    EXPECT_GT(states[i].window, 0u);
  }
  EXPECT_GT(paths.footprint(), 3 * sizeof(PathState));
}

}  // namespace
}  // namespace cluster::multipath
