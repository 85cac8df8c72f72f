// Teams of one endpoint: groups that they open, listeners, and messages of teams that nothing here joins.
#include "unit/collective/collectives_world.h"

namespace cluster::collective {
namespace {

using test::CollectivesTest;
using test::FakeTransport;
using test::Listener;

/// As soon as it hears that all have joined.
TEST_F(CollectivesTest, AListenerMayBeginOperationsAndMakeTeams) {
  struct Busy final : JoinListener {
    void joined(Status) override {
      if (left-- == 0) return;
      for (int i = 0; i < 100; ++i)
        EXPECT_EQ(collectives->start(*team, {.kind = Kind::barrier}, nullptr, true), Status::ok);
      for (std::uint64_t key = 1; key < 100; ++key) collectives->create(CollectivesTest::members(2), 0, key);
    }
    Collectives* collectives;
    Team* team;
    int left = 1;
  } busy;
  busy.collectives = &collectives_;
  busy.team = &collectives_.create(members(3), 0);
  collectives_.join(*busy.team, busy);
  complete_operations(*busy.team);
  EXPECT_EQ(busy.left, 0);
}

TEST_F(CollectivesTest, ABroadcastWaitsUntilAllNodesHaveJoinedTheGroup) {
  transport_.multicast = true;
  Team& team = collectives_.create(members(4), 0);
  collectives_.join(team, listener_);
  std::vector<std::byte> bytes(kMulticastMin);
  const Arguments arguments{.kind = Kind::broadcast, .target = bytes};
  EXPECT_EQ(collectives_.start(team, arguments, nullptr, true), Status::ok);
  ASSERT_EQ(transport_.groups.size(), 1u);
  EXPECT_EQ(transport_.groups[0].size(), 4u);
  const auto spread = [&] {
    return std::count(transport_.destinations.begin(), transport_.destinations.end(), FakeTransport::kGroup);
  };
  collectives_.advance();
  EXPECT_EQ(spread(), 0);
  EXPECT_TRUE(collectives_.pending());
  transport_.joined = true;
  collectives_.advance();
  EXPECT_EQ(spread(), 1);
  EXPECT_EQ(collectives_.start(team, arguments, nullptr, true), Status::ok);
  EXPECT_EQ(spread(), 2);
  EXPECT_EQ(transport_.groups.size(), 1u) << "a team has one group";
  complete_everything(Status::ok);
  complete_everything(Status::ok);
  EXPECT_EQ(collectives_.leave(team), Status::ok);
  EXPECT_TRUE(transport_.closed);
}

TEST_F(CollectivesTest, ShortBroadcastsOpenAGroupWhenThereAreMany) {
  transport_.multicast = true;
  Team& team = collectives_.create(members(4), 0);
  collectives_.join(team, listener_);
  std::vector<std::byte> bytes(8);
  const Arguments arguments{.kind = Kind::broadcast, .target = bytes};
  for (std::uint32_t i = 0; i < Team::kBroadcastsBefore; ++i) {
    EXPECT_EQ(collectives_.start(team, arguments, nullptr, true), Status::ok);
    EXPECT_EQ(collectives_.start(team, {.kind = Kind::barrier}, nullptr, true), Status::ok);
    EXPECT_TRUE(transport_.groups.empty());
  }
  EXPECT_EQ(collectives_.start(team, arguments, nullptr, true), Status::ok);
  EXPECT_EQ(transport_.groups.size(), 1u);
}

TEST_F(CollectivesTest, ABroadcastInOneNodeNeedsNoGroup) {
  transport_.multicast = true;
  std::vector<MemberAddress> here = members(4);
  for (MemberAddress& member : here)
    member.name = here[0].name.with_port(static_cast<std::uint16_t>(7000 + member.handle));
  Team& team = collectives_.create(std::move(here), 0);
  collectives_.join(team, listener_);
  std::vector<std::byte> bytes(kMulticastMin);
  EXPECT_EQ(collectives_.start(team, {.kind = Kind::broadcast, .target = bytes}, nullptr, true), Status::ok);
  EXPECT_TRUE(transport_.groups.empty());
}

/// The root must retransmit its lost frames.
TEST_F(CollectivesTest, ALongMulticastIsOverWhenAllHaveIt) {
  transport_.multicast = transport_.joined = true;
  Team& team = collectives_.create(members(4), 0);
  collectives_.join(team, listener_);
  std::vector<std::byte> bytes(2 * kLong);
  const auto level_of = [&](std::size_t length) {
    EXPECT_EQ(collectives_.start(team, {.kind = Kind::broadcast, .target = Bytes(bytes).first(length)},
                                 nullptr, true),
              Status::ok);
    return transport_.levels.back();
  };
  EXPECT_EQ(level_of(kMulticastMin), protocol::CompletionLevel::inject);
  EXPECT_EQ(level_of(bytes.size()), protocol::CompletionLevel::transmit);
}

TEST_F(CollectivesTest, AGroupIsAwaitedAsLongAsWhatAnotherNodeSpreadsIsToCome) {
  transport_.multicast = transport_.joined = true;
  Team& team = collectives_.create(members(4), 0);
  collectives_.join(team, listener_);
  complete_everything(Status::ok);
  complete_everything(Status::ok);
  std::vector<std::byte> bytes(kMulticastMin);
  EXPECT_EQ(collectives_.start(team, {.kind = Kind::broadcast, .target = bytes}, nullptr, true), Status::ok);
  EXPECT_EQ(transport_.awaited, 0) << "it comes from here";
  transport_.contexts.clear();
  const Arguments of_another{.kind = Kind::broadcast, .target = bytes, .root = 2};
  EXPECT_EQ(collectives_.start(team, of_another, nullptr, true), Status::ok);
  EXPECT_EQ(collectives_.start(team, of_another, nullptr, true), Status::ok);
  EXPECT_EQ(transport_.awaited, 2);
  ASSERT_EQ(transport_.contexts.size(), 2u);
  collectives_.received(transport_.contexts[0], Status::ok, bytes.size());
  collectives_.advance();
  EXPECT_EQ(transport_.awaited, 1);
  collectives_.member_lost(team.address(3).name, Status::ended);
  collectives_.advance();
  EXPECT_EQ(transport_.awaited, 1) << "its receive is canceled, and not over";
  collectives_.received(transport_.contexts[1], Status::canceled, 0);
  collectives_.advance();
  EXPECT_EQ(transport_.awaited, 0);
}

TEST_F(CollectivesTest, TheOldestTeamThatWasNeverJoinedGivesWay) {
  constexpr std::uint64_t kTeams = 1024;
  for (std::uint64_t team = 1; team <= kTeams; ++team) EXPECT_TRUE(arrives(team));
  EXPECT_TRUE(arrives(kTeams + 1));
  collectives_.advance();
  EXPECT_EQ(transport_.discarded, std::set<std::uint64_t>{1});
  EXPECT_FALSE(arrives(1));
  EXPECT_TRUE(arrives(2));
}

TEST_F(CollectivesTest, AJoinWhoseMessagesGaveWayFails) {
  const std::uint64_t id = Team::identity(members(3), 0, 0);
  EXPECT_TRUE(arrives(id));
  for (std::uint64_t team = 1; team <= 1024; ++team) EXPECT_TRUE(arrives(team));
  collectives_.join(collectives_.create(members(3), 0), listener_);
  complete_everything(Status::ok);
  EXPECT_EQ(listener_.outcomes, std::vector{Status::reset});
}

/// A member that learns nothing may wait for ever.
TEST_F(CollectivesTest, ANoticeForWhichThereIsNoSpaceIsSentLater) {
  Team& team = collectives_.create(members(8), 0);
  collectives_.join(team, listener_);
  transport_.full = {1, 2};
  transport_.destinations.clear();
  collectives_.member_lost(team.address(3).name, Status::ended);
  collectives_.advance();
  std::vector<std::uint64_t> notified = std::exchange(transport_.destinations, {});
  std::ranges::sort(notified);
  notified.erase(std::unique(notified.begin(), notified.end()), notified.end());
  EXPECT_EQ(notified, (std::vector<std::uint64_t>{4, 6, 7}));
  complete_everything(Status::canceled);
  EXPECT_TRUE(team.operations().empty());
  EXPECT_TRUE(collectives_.pending());
  EXPECT_EQ(collectives_.leave(team), Status::again) << "two members do not know yet";
  transport_.full = {2};
  collectives_.advance();
  EXPECT_EQ(transport_.destinations, std::vector<std::uint64_t>{1});
  EXPECT_TRUE(collectives_.pending());
  transport_.full = {};
  collectives_.advance();
  EXPECT_EQ(transport_.destinations, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_FALSE(collectives_.pending());
  EXPECT_EQ(collectives_.leave(team), Status::ok);
}

TEST_F(CollectivesTest, AnUnknownSourceEndsNoTeam) {
  Team& team = collectives_.create(members(3), 0);
  collectives_.join(team, listener_);
  const std::uint64_t failure = TeamTag::failure_of(team.id()).bits();
  EXPECT_FALSE(collectives_.wanted(failure, static_cast<std::uint64_t>(Status::reset), false));
  collectives_.advance();
  EXPECT_EQ(team.status(), Status::ok);
  EXPECT_FALSE(collectives_.wanted(failure, static_cast<std::uint64_t>(Status::reset), true));
  collectives_.advance();
  EXPECT_NE(team.status(), Status::ok);
}

TEST_F(CollectivesTest, AnUnknownSourceEndsNoTeamToCome) {
  const std::uint64_t failure = TeamTag::failure_of(Team::identity(members(3), 0, 0)).bits();
  EXPECT_FALSE(collectives_.wanted(failure, static_cast<std::uint64_t>(Status::reset), false));
  EXPECT_TRUE(collectives_.wanted(failure, static_cast<std::uint64_t>(Status::reset), true));
}

TEST_F(CollectivesTest, UnknownSourcesPushOutNothingOfMembers) {
  constexpr std::uint64_t kTeams = 1024;
  for (std::uint64_t team = 1; team < kTeams; ++team) EXPECT_TRUE(arrives(team));
  EXPECT_TRUE(arrives(kTeams, false));
  EXPECT_TRUE(arrives(kTeams + 1, false));
  collectives_.advance();
  EXPECT_EQ(transport_.discarded, std::set<std::uint64_t>{kTeams});
  EXPECT_TRUE(arrives(kTeams + 2));
  EXPECT_FALSE(arrives(kTeams + 3, false));
  EXPECT_TRUE(arrives(1));
}

TEST_F(CollectivesTest, AKeyMakesAnotherTeamOfTheSameMembers) {
  const std::uint64_t first = collectives_.create(members(3), 0, 7).id();
  Collectives other(transport_);
  const std::uint64_t second = other.create(members(3), 1, 8).id();
  EXPECT_NE(first, second);
  EXPECT_EQ(collectives_.create(members(3), 0, 8).id(), second);
  EXPECT_EQ(other.create(members(3), 1, 7).id(), first);
}

}  // namespace
}  // namespace cluster::collective
