// The EtherType path beside an IP path: which frames take it, what it learns about itself, when it fails.
#include "unit/multipath/path_manager_fixture.h"

namespace cluster::multipath {
namespace {

/// The EtherType path beside path 0.
struct EthertypePathTest : PathManagerTest {
  void validate_ethertype(Duration at = 0ns) {
    const auto challenge = paths.ethertype_challenge_due(Time(at));
    ASSERT_TRUE(challenge && challenge->to.ethertype);
    ethertype = challenge->path;
    paths.on_challenge_sent(Time(at), ethertype);
    respond(at);
  }
  void respond(Duration at) {
    link::Path from = way(0, 0);
    from.ethertype = true;
    paths.on_response(Time(at), Time(at), from, true);
  }
  std::size_t path_for_lone_frame() { return paths.path_for_lone_frame(0); }

  std::size_t ethertype = 0;
};

TEST_F(EthertypePathTest, FramesThatLeaveAloneTakeItOnceItIsValidated) {
  EXPECT_EQ(path_for_lone_frame(), 0u);
  validate_ethertype();
  EXPECT_EQ(paths.ip_paths(), 1u);
  EXPECT_EQ(path_for_lone_frame(), ethertype);
  EXPECT_EQ(paths.select(Time(1ms)).path, 0u) << "bursts are granted to the IP path";
  EXPECT_TRUE(paths.stats().front().ethertype);
  EXPECT_EQ(paths.stats().size(), 1u);
}

TEST_F(EthertypePathTest, TheHostsAnswerDoesNotValidateIt) {
  const auto challenge = paths.ethertype_challenge_due(Time{});
  ASSERT_TRUE(challenge);
  link::Path from = way(0, 0);
  from.ethertype = true;
  paths.on_response(Time{}, Time{}, from, false);
  EXPECT_FALSE(validated(challenge->path));
}

TEST_F(EthertypePathTest, ItOvertakesNoBurst) {
  validate_ethertype();
  send(1ms, 0);
  send(1ms, 0);
  paths.on_burst_sent(0, {2});
  EXPECT_EQ(path_for_lone_frame(), 0u);
  acknowledge(2ms, {0, 1});
  EXPECT_EQ(path_for_lone_frame(), ethertype);
}

TEST_F(EthertypePathTest, ItHasItsOwnLossesAndFailsWithTheFirst) {
  paths[0].recovery.sample(Time{}, 20us, 20us);
  validate_ethertype();
  EXPECT_EQ(paths[ethertype].recovery.reply_time().smoothed(), 20us) << "what is known of the IP path";
  for (int i = 0; i < 6; ++i) send(1ms + i * 1us, ethertype);
  acknowledge(1ms + 30us, {5});
  EXPECT_EQ(detect(2ms).size(), 5u);
  EXPECT_FALSE(validated(ethertype));
  EXPECT_TRUE(validated(0));
  EXPECT_EQ(paths[0].recovery.congestion().window(), CongestionController::kInitialWindow);
  EXPECT_EQ(path_for_lone_frame(), 0u);
}

TEST_F(EthertypePathTest, ItFailsWhenLaterFramesOfTheIpPathArriveAndItsOwnDoNot) {
  paths[0].recovery.sample(Time{}, 20us, 20us);
  validate_ethertype();
  send(1ms, ethertype);
  send(1ms + 1us, 0);
  acknowledge(1ms + 20us, {1});
  EXPECT_TRUE(detect(1ms + 30us).empty());
  const Time fails = paths.deadline();
  EXPECT_LE(fails, Time(3ms));
  std::vector<Sequence> lost;
  paths.detect_losses(fails, lost);
  EXPECT_EQ(lost, (std::vector<Sequence>{{0}}));
  EXPECT_FALSE(validated(ethertype));
}

TEST_F(EthertypePathTest, TheIpPathDoesNotFailWhileItIsTheOnlyOne) {
  paths[0].recovery.sample(Time{}, 20us, 20us);
  validate_ethertype();
  send(1ms, 0);
  send(1ms + 1us, ethertype);
  acknowledge(1ms + 20us, {1});
  EXPECT_TRUE(detect(10s).empty());
  EXPECT_TRUE(validated(0));
}

TEST_F(EthertypePathTest, OneUnansweredFrameFailsIt) {
  validate_ethertype();
  send(1ms, ethertype);
  paths.on_unanswered(Time(2ms), ethertype, Time(1ms));
  EXPECT_FALSE(validated(ethertype));
}

TEST_F(EthertypePathTest, AnswersToItsFramesTakeItToo) {
  validate_ethertype();
  link::Path from = way(0, 0);
  from.ethertype = true;
  paths.learn(from, true);
  EXPECT_TRUE(paths.reply_path().ethertype);
  paths.learn(way(0, 0), true);
  EXPECT_FALSE(paths.reply_path().ethertype);
  paths.learn(from, true);
  paths.suspect_ethertype_paths(Time(1ms));
  EXPECT_FALSE(paths.reply_path().ethertype);
  EXPECT_FALSE(paths.reordering_expected());
}

TEST_F(EthertypePathTest, ItFollowsTheHardwareAddressOfItsIpPath) {
  validate_ethertype();
  link::Path from = way(0, 0);
  from.mac = {std::byte{2}};
  from.mac_known = true;
  paths.learn(from, false);
  EXPECT_TRUE(paths[ethertype].address.mac_known && paths[ethertype].address.same_mac(from));
  EXPECT_TRUE(paths[ethertype].address.ethertype);
}

}  // namespace
}  // namespace cluster::multipath
