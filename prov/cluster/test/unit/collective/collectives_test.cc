// Teams of one endpoint, with a transport that a test directs: joins that run out of memory, and messages of teams that
// nothing here joins.
#include "collective/collectives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <new>
#include <set>

namespace cluster::collective {
namespace {

/// Takes every message and completes none.
class FakeTransport final : public Transport {
 public:
  bool has_multicast() const override { return multicast; }
  std::uint64_t open_group(const std::vector<SocketAddress>& members, std::uint64_t) override {
    groups.push_back(members);
    return kGroup;
  }
  bool group_joined(std::uint64_t) const override { return joined; }
  void expect(std::uint64_t) override { ++awaited; }
  void end_wait(std::uint64_t) override { --awaited; }
  void close_group(std::uint64_t) override { closed = true; }
  Status send(const protocol::SendOp& op) override {
    destinations.push_back(op.to);
    levels.push_back(op.completion_level);
    if (sends_until_exhausted-- == 0) throw std::bad_alloc();
    contexts.push_back(op.context);
    return Status::ok;
  }
  Status receive(const protocol::RecvOp& op) override {
    contexts.push_back(op.context);
    return Status::ok;
  }
  void cancel(const void*) override {}
  std::size_t discard(std::uint64_t tag, std::uint64_t ignore) override {
    if (ignore == TeamTag::kAnyOfTeam) discarded.insert(TeamTag(tag).team());
    return 0;
  }

  static constexpr std::uint64_t kGroup = 4711;
  int sends_until_exhausted = -1;  ///< never
  int awaited = 0;
  bool multicast = false;
  bool joined = false;
  bool closed = false;
  std::vector<std::vector<SocketAddress>> groups;
  std::vector<std::uint64_t> destinations;
  std::vector<protocol::CompletionLevel> levels;
  std::vector<void*> contexts;
  std::set<std::uint64_t> discarded;
};

struct Listener final : JoinListener {
  void joined(Status status) override { outcomes.push_back(status); }
  std::vector<Status> outcomes;
};

class CollectivesTest : public testing::Test {
 protected:
  CollectivesTest() { collectives_.attach(nullptr, true); }

  static std::vector<MemberAddress> members(std::size_t count) {
    std::vector<MemberAddress> all;
    for (std::size_t i = 0; i < count; ++i) {
      const std::byte ip[4] = {std::byte{10}, {}, {}, static_cast<std::byte>(i + 1)};
      all.push_back({i, SocketAddress::v4(ip, 7000)});
    }
    return all;
  }
  bool arrives(std::uint64_t team, bool of_member = true) {
    return collectives_.wanted(TeamTag(team, 0, 0).bits(), 0, of_member);
  }
  void complete_everything(Status status) {
    for (void* const context : std::exchange(transport_.contexts, {})) collectives_.sent(context, status);
    collectives_.advance();
  }

  void complete_operations(Team& team) {
    for (int i = 0; i < 10 && !team.operations().empty(); ++i) complete_everything(Status::ok);
    EXPECT_TRUE(team.operations().empty());
  }

  FakeTransport transport_;
  Collectives collectives_{transport_};
  Listener listener_;
};

TEST_F(CollectivesTest, AJoinThatFindsNoMemoryForgetsItsListener) {
  Team& team = collectives_.create(members(kFewNodes + 1), 0);
  const std::uint64_t id = team.id();
  transport_.sends_until_exhausted = 0;
  EXPECT_THROW(collectives_.join(team, listener_), std::bad_alloc);
  EXPECT_TRUE(collectives_.pending());
  complete_everything(Status::canceled);
  EXPECT_TRUE(listener_.outcomes.empty());
  EXPECT_EQ(collectives_.find(id), nullptr);
  EXPECT_FALSE(arrives(id));
}

/// As soon as it hears that all have joined.
TEST_F(CollectivesTest, AListenerMayBeginOperationsAndMakeTeams) {
  struct Busy final : JoinListener {
    void joined(Status) override {
      if (left-- == 0) return;
      for (int i = 0; i < 100; ++i) EXPECT_EQ(collectives->start(*team, {.kind = Kind::barrier}, nullptr, true), Status::ok);
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
  const auto spread = [&] { return std::count(transport_.destinations.begin(), transport_.destinations.end(), FakeTransport::kGroup); };
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
  for (MemberAddress& member : here) member.name = here[0].name.with_port(static_cast<std::uint16_t>(7000 + member.handle));
  Team& team = collectives_.create(std::move(here), 0);
  collectives_.join(team, listener_);
  std::vector<std::byte> bytes(kMulticastMin);
  EXPECT_EQ(collectives_.start(team, {.kind = Kind::broadcast, .target = bytes}, nullptr, true), Status::ok);
  EXPECT_TRUE(transport_.groups.empty());
}

/// What is lost of it the root has to send again.
TEST_F(CollectivesTest, ALongMulticastIsOverWhenAllHaveIt) {
  transport_.multicast = transport_.joined = true;
  Team& team = collectives_.create(members(4), 0);
  collectives_.join(team, listener_);
  std::vector<std::byte> bytes(2 * kLong);
  const auto level_of = [&](std::size_t length) {
    EXPECT_EQ(collectives_.start(team, {.kind = Kind::broadcast, .target = Bytes(bytes).first(length)}, nullptr, true), Status::ok);
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

/// What a member has said to the others is said once, and what it has not said is not forgotten.
TEST_F(CollectivesTest, AnOperationThatFindsNoMemoryGoesOnWithWhatItHasNotSent) {
  Team& team = collectives_.create(members(4), 0);
  collectives_.join(team, listener_);
  complete_everything(Status::ok);
  complete_everything(Status::ok);
  ASSERT_TRUE(team.complete());
  transport_.destinations.clear();
  EXPECT_EQ(collectives_.start(team, {.kind = Kind::barrier}, nullptr, true), Status::ok);
  const std::vector<void*> receives = std::exchange(transport_.contexts, {});
  ASSERT_EQ(receives.size(), 3u) << "the others meet here";
  for (void* const context : receives) collectives_.received(context, Status::ok, 0);
  transport_.sends_until_exhausted = 1;
  EXPECT_THROW(collectives_.advance(), std::bad_alloc);
  EXPECT_TRUE(collectives_.pending());
  collectives_.advance();
  std::sort(transport_.destinations.begin(), transport_.destinations.end());
  EXPECT_EQ(transport_.contexts.size(), 3u);
  EXPECT_EQ(transport_.destinations, (std::vector<std::uint64_t>{1, 2, 2, 3})) << "one of them was tried twice";
  complete_everything(Status::ok);
  EXPECT_TRUE(team.operations().empty());
}

/// A call that was refused would be repeated with the next number, which is another operation to the others.
TEST_F(CollectivesTest, AnOperationThatFindsNoMemoryAtItsBeginningIsTaken) {
  Team& team = collectives_.create(members(kFewNodes + 1), 0);
  collectives_.join(team, listener_);
  complete_operations(team);
  transport_.sends_until_exhausted = 0;
  EXPECT_EQ(collectives_.start(team, {.kind = Kind::barrier}, nullptr, true), Status::ok);
  EXPECT_TRUE(collectives_.pending());
  EXPECT_TRUE(transport_.contexts.empty());
  collectives_.advance();
  EXPECT_EQ(transport_.contexts.size(), 2u) << "to one neighbor, from another";
  complete_operations(team);
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
