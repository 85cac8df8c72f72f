// When an outage begins and ends (row by row), how long it may last, and what becomes of peers meanwhile.
#include "network/outage_watch.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "support/node.h"

namespace cluster::network {
namespace {

using News = OutageWatch::News;
using reliability::Liveness;
using test::node_name;

constexpr Time at(Duration since) { return Time{} + 1h + since; }
constexpr Duration kTimeout = 20s;
constexpr Duration kLimit = 60s;

/// One endpoint and its members, one on each node unless a test says otherwise.
class OutageWatchTest : public ::testing::Test {
 protected:
  struct Member {
    SocketAddress name;
    std::unique_ptr<Liveness> liveness;
    bool answers = true;
  };
  Member& add(int node, bool owes, std::uint16_t port = 9228) {
    auto liveness = std::make_unique<Liveness>(kTimeout, 0s, Liveness::Probes::none, &outage);
    liveness->on_met(false);
    liveness->on_sign_of_life(now, false);
    liveness->set_expecting(now, owes);
    members.push_back({node_name(node).with_port(port), std::move(liveness)});
    return members.back();
  }
  void add_many(int from, int to, bool owe, bool answer) {
    for (int node = from; node < to; ++node) add(node, owe).answers = answer;
  }
  /// Time goes on as in an engine that looks often. Members that answer are heard if they owe something or
  /// are asked.
  std::vector<News> pass(Duration time) {
    std::vector<News> seen;
    for (const Time end = now + time; now < end;) {
      now += 10ms;
      bool suspected = false;
      watch.begin_review();
      for (Member& each : members) {
        const bool asked = watch.wants_witness(now, *each.liveness);
        if (asked) each.liveness->on_keep_alive_sent(now);
        if (each.answers && (asked || each.liveness->expecting())) each.liveness->on_sign_of_life(now, false);
        EXPECT_EQ(each.liveness->check(now), Status::ok);
        if (each.liveness->keep_alive_due(now)) each.liveness->on_keep_alive_sent(now);
        suspected |= watch.suspicious(now, *each.liveness);
        watch.note(now, each.name, *each.liveness);
      }
      const News news = watch.finish_review(now, suspected, carrier);
      if (news != News::none) seen.push_back(news);
    }
    return seen;
  }

  Time now = at(0s);
  Outage outage;
  OutageWatch watch{outage, kLimit, kTimeout};
  bool carrier = true;
  std::vector<Member> members;
};

TEST_F(OutageWatchTest, AllThatOweAreSilent) {
  add_many(1, 4, true, false);
  EXPECT_EQ(pass(1900ms), std::vector<News>{});
  EXPECT_EQ(pass(200ms), std::vector{News::begins});
  EXPECT_EQ(watch.silent_nodes(), 3u);
  pass(10s);
  EXPECT_TRUE(outage.present());
  members[1].answers = true;
  EXPECT_EQ(pass(200ms), std::vector{News::ends});
}

TEST_F(OutageWatchTest, TheOnlyPeerIsSilent) {
  add_many(1, 2, true, false);
  EXPECT_EQ(pass(3s), std::vector{News::begins});
}

TEST_F(OutageWatchTest, OneIsSilentAndAnotherIsHeard) {
  add_many(1, 2, true, false);
  add_many(2, 3, true, true);
  EXPECT_EQ(pass(10s), std::vector<News>{});
}

/// Nothing is expected of it, so it has to be asked.
TEST_F(OutageWatchTest, OneIsSilentAndOneThatOwesNothingAnswers) {
  add_many(1, 2, true, false);
  add_many(2, 3, false, true);
  EXPECT_EQ(pass(10s), std::vector<News>{});
}

TEST_F(OutageWatchTest, OneIsSilentAndOneThatOwesNothingDoesNotAnswer) {
  add_many(1, 2, true, false);
  add_many(2, 3, false, false);
  EXPECT_EQ(pass(10s), std::vector{News::begins});
}

TEST_F(OutageWatchTest, OneInNineMayBeHeard) {
  add_many(1, 9, true, false);
  add_many(9, 10, true, true);
  EXPECT_EQ(pass(10s), std::vector{News::begins});
}

TEST_F(OutageWatchTest, OneInEightIsHeard) {
  add_many(1, 8, true, false);
  add_many(8, 9, true, true);
  EXPECT_EQ(pass(10s), std::vector<News>{});
}

TEST_F(OutageWatchTest, PeersOfOneNodeCountOnce) {
  for (std::uint16_t port = 1; port <= 16; ++port) add(1, true, port).answers = false;
  add_many(2, 3, true, true);
  EXPECT_EQ(pass(10s), std::vector<News>{});
}

TEST_F(OutageWatchTest, ANodeOfWhichOnePeerIsHeardIsNotSilent) {
  add(1, true, 1).answers = false;
  add(1, true, 2).answers = true;
  EXPECT_EQ(pass(10s), std::vector<News>{});
}

TEST_F(OutageWatchTest, NothingIsOwed) {
  add_many(1, 4, false, false);
  EXPECT_EQ(pass(10s), std::vector<News>{});
}

TEST_F(OutageWatchTest, NoCarrier) {
  carrier = false;
  add_many(1, 2, true, false);
  EXPECT_EQ(pass(1200ms), std::vector{News::begins});
  pass(10s);
  carrier = true;
  EXPECT_EQ(pass(200ms), std::vector{News::heard}) << "the cable is back, but nobody has answered yet";
  members[0].answers = true;
  EXPECT_EQ(pass(200ms), std::vector{News::ends});
}

/// After the limit nobody is heard, so the silence counts until the peer is lost.
TEST_F(OutageWatchTest, AnOutageHasALimit) {
  add_many(1, 2, true, false);
  EXPECT_EQ(pass(2s + kLimit + 300ms), (std::vector{News::begins, News::limit}));
  EXPECT_EQ(pass(10s), std::vector<News>{});
}

/// Somebody on the path lets a frame pass now and then: all outages together are bounded.
TEST_F(OutageWatchTest, OutagesThatFollowEachOtherShareTheLimit) {
  Member& peer = add(1, true);
  Duration total{};
  for (int round = 0; round < 20; ++round) {
    peer.answers = false;
    pass(12s);
    total += outage.present() ? outage.length(now) : 0ns;
    peer.answers = true;
    pass(200ms);
  }
  EXPECT_GE(total, kLimit - 12s);
  EXPECT_LE(total, kLimit + 20 * 3s);
}

TEST_F(OutageWatchTest, WithoutALimitThereIsNone) {
  OutageWatch off(outage, 0s, kTimeout);
  Liveness liveness(kTimeout);
  liveness.set_expecting(at(0s), true);
  EXPECT_FALSE(off.suspicious(at(10s), liveness));
}

/// Engines over a network that loses everything for a while.
class OutageTest : public test::EngineTest {
 protected:
  static transport::EngineSettings settings() {
    transport::EngineSettings settings = test::node_settings();
    settings.outage = kLimit;
    return settings;
  }
  template <typename... Nodes>
  void wait(Duration time, Nodes&... nodes) {
    for (const Time end = clock.now() + time; clock.now() < end; clock.advance(10ms))
      (nodes.engine.poll(), ...);
  }
};

TEST_F(OutageTest, OperationsOutliveIt) {
  test::Node a(network, test::kA, test::kB, 1000, nullptr, settings());
  test::Node b(network, test::kB, test::kA, 1000, nullptr, settings());
  b.receive();
  b.receive();
  a.send();
  wait(1s, a, b);
  EXPECT_EQ(b.got, 1u);
  network.conditions.blackout = true;
  a.send();
  wait(45s, a, b);
  EXPECT_EQ(a.peer().lost, Status::ok);
  EXPECT_EQ(a.logged("no other node answers (1 silent)"), 1u);
  network.conditions.blackout = false;
  wait(1200ms, a, b);
  EXPECT_EQ(b.got, 2u) << "retransmission starts soon";
  EXPECT_EQ(a.logged("the outage ended after 4"), 1u);
  EXPECT_EQ(a.log().lines.size(), 2u + a.logged("is reached over"));
}

TEST_F(OutageTest, APeerThatStaysSilentIsLostAfterTheLimit) {
  test::Node a(network, test::kA, test::kB, 1000, nullptr, settings());
  {
    test::Node b(network, test::kB, test::kA, 1000, nullptr, settings());
    a.send();
    wait(1s, a, b);
    network.conditions.blackout = true;
  }
  a.send();
  wait(kLimit, a);
  EXPECT_EQ(a.peer().lost, Status::ok);
  wait(6s, a);
  EXPECT_EQ(a.peer().lost, Status::unreachable);
  EXPECT_EQ(a.logged("outages have used up the time that FI_CLUSTER_OUTAGE allows (this outage: 60.0 s)"),
            1u);
}

TEST_F(OutageTest, AnAddressThatNeverAnsweredIsNoOutage) {
  test::Node a(network, test::kA, test::kB, 1000, nullptr, settings());
  a.send();
  wait(6s, a);
  EXPECT_EQ(a.peer().lost, Status::unreachable);
  EXPECT_EQ(a.logged("no other node answers"), 0u);
}

}  // namespace
}  // namespace cluster::network
