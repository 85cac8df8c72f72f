// Paths between queue pairs, beside IP paths: what they carry, and what their failure means.
#include <string>

#include "support/queue_pair_address.h"
#include "unit/multipath/path_manager_fixture.h"

namespace cluster::multipath {
namespace {

using test::queue_pair;

struct VerbsPath : testing::Test {
  void join() {
    const std::vector<wire::VerbsAddress> named{{peer[1], 1024}};
    paths.join(peer, named);
  }
  void validate() {
    join();
    ASSERT_EQ(paths.size(), 2u);
    paths.on_response(Time{}, Time{}, {peer[1], {}, false, 1}, true);
    ASSERT_TRUE(paths[1].validator.validated());
  }
  bool path_error(Duration at) {
    link::PathError error;
    error.peer = peer[1];
    error.status = Status::unreachable;
    error.link = 1;
    return paths.on_path_error(Time(at), error);
  }

  test::FakeLog log;
  const std::vector<Rail> own{{address(0, kOurs), 24, "eth0"},
                              {queue_pair(kOurs, 17), 96 + 24, "rxe0/1", 4096}};
  const std::vector<SocketAddress> peer{address(0, kPeer), queue_pair(kPeer, 18)};
  PathManager paths{own, way(0, 0), 64, log};
};

TEST_F(VerbsPath, IsChallengedFirstAndHasTheShorterLimit) {
  join();
  ASSERT_EQ(paths.size(), 2u);
  EXPECT_TRUE(paths[1].is_verbs());
  EXPECT_FALSE(paths[1].validator.validated());
  EXPECT_EQ(paths[1].frame_max, 1024u);
  EXPECT_EQ(paths[0].frame_max, PathState::kNone);
  const auto challenge = paths.challenge_due(Time(1ms));
  ASSERT_TRUE(challenge);
  EXPECT_EQ(challenge->to.to, peer[1]);
  EXPECT_EQ(challenge->to.link, 1);
}

TEST_F(VerbsPath, HasNoEthertypePath) {
  validate();
  while (const auto challenge = paths.ethertype_challenge_due(Time(1ms))) {
    EXPECT_FALSE(challenge->to.to.verbs());
    paths.on_challenge_sent(Time(1ms), challenge->path);
  }
  EXPECT_EQ(paths.size(), 3u) << "only the IP path has one";
}

TEST_F(VerbsPath, AnotherSubnetIsNoPathEvenForAMember) {
  std::byte gid[SocketAddress::kGidBytes]{};
  gid[0] = std::byte{0xfd};
  paths.join(std::vector<SocketAddress>{peer[0], SocketAddress::queue_pair(gid, 18)});
  EXPECT_EQ(paths.size(), 1u);
}

TEST_F(VerbsPath, FirstContactAndKeepAlivesDoNotUseIt) {
  for (int i = 0; i < 5; ++i) {
    paths.try_next_rail();
    EXPECT_EQ(paths[0].address.link, 0);
  }
  validate();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(paths.keep_alive_path(i % 2 == 0).to, peer[0]);
  paths[0].validator.fail(Time(1ms));
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(paths.keep_alive_path(true).to, peer[0]) << "though only the other works";
  EXPECT_EQ(paths.next_validated().to, peer[1]);
}

TEST_F(VerbsPath, ItsFailureNeverCountsAgainstThePeer) {
  validate();
  EXPECT_TRUE(path_error(1ms));
  EXPECT_FALSE(paths[1].validator.validated());
  paths.on_response(Time(2ms), Time(2ms), {peer[1], {}, false, 1}, true);
  paths[0].validator.fail(Time(3ms));
  EXPECT_TRUE(path_error(4ms)) << "the only path that works";
  EXPECT_FALSE(paths[1].validator.validated());
}

TEST_F(VerbsPath, LeadsToTheNewQueuePairAfterItWasReplaced) {
  validate();
  const SocketAddress next = queue_pair(kPeer, 19);
  paths.on_peer_queue_pair(Time(1ms), peer[1], next);
  EXPECT_EQ(paths[1].address.to, next);
  EXPECT_EQ(paths[1].frame_max, 1024u);
  EXPECT_FALSE(paths.has_queue_pair()) << "it has not answered";
  EXPECT_TRUE(std::ranges::find(paths.validated_addresses(), peer[1]) == paths.validated_addresses().end());
  const auto challenge = paths.challenge_due(Time(2ms));
  ASSERT_TRUE(challenge);
  EXPECT_EQ(challenge->to.to, next);
  paths.on_response(Time(3ms), Time(3ms), {peer[1], {}, false, 1}, true);
  EXPECT_FALSE(paths.has_queue_pair()) << "the answer comes from the former queue pair";
  paths.on_response(Time(4ms), Time(4ms), {next, {}, false, 1}, true);
  EXPECT_TRUE(paths.has_queue_pair());
}

TEST_F(VerbsPath, IsPreferredWhileItWorksIfTheRailIs) {
  std::vector<Rail> preferring = own;
  preferring[1].preferred = true;
  PathManager chosen(preferring, way(0, 0), 64, log);
  chosen.join(peer);
  EXPECT_EQ(chosen.select(Time(1ms)).path, 0u) << "it is not validated";
  chosen.on_response(Time{}, Time{}, {peer[1], {}, false, 1}, true);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(chosen.select(Time(Duration(i * 1ms))).path, 1u);
  chosen.on_link_full(1);
  EXPECT_EQ(chosen.select(Time(30ms)).frames, 0u) << "it waits for the device";
  chosen.begin_turn();
  chosen[1].validator.fail(Time(40ms));
  EXPECT_EQ(chosen.select(Time(40ms)).path, 0u);
  EXPECT_GT(chosen.select(Time(40ms)).frames, 0u);
}

TEST_F(VerbsPath, WhatIsTooLongForItTakesAnIpPath) {
  validate();
  EXPECT_EQ(paths.unlimited(1), 0u);
  EXPECT_EQ(paths.unlimited(0), 0u);
}

TEST_F(VerbsPath, ItsSilenceIsNoWarningOnceItHasWorked) {
  validate();
  paths[1].validator.fail(Time(1ms));
  for (int i = 0; i < 10; ++i) paths.on_challenge_sent(Time(Duration(1s) * i), 1);
  ASSERT_EQ(log.lines.size(), 2u) << "it works, and it does not answer";
  EXPECT_NE(log.lines[1].find("does not answer; frames use the other paths"), std::string::npos)
      << log.lines[1];
}

}  // namespace
}  // namespace cluster::multipath
