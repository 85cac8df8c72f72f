// Teams of one endpoint when there is no memory, or no space for a completion.
#include "support/failing_memory.h"
#include "unit/collective/collectives_world.h"

namespace cluster::collective {
namespace {

using test::CollectivesTest;
using test::FakeTransport;
using test::Listener;

TEST_F(CollectivesTest, AJoinThatFindsNoMemoryFails) {
  Team& team = collectives_.create(members(2 * kFewNodes), 0);
  transport_.sends_until_exhausted = 0;
  collectives_.join(team, listener_);
  complete_everything(Status::canceled);
  EXPECT_EQ(listener_.outcomes, std::vector{Status::no_memory});
  EXPECT_EQ(collectives_.leave(team), Status::ok);
}

/// base/end_of_memory.h: like a team that has lost a member. The others are told.
TEST_F(CollectivesTest, AnOperationThatFindsNoMemoryFailsItsTeam) {
  for (const bool at_its_beginning : {true, false}) {
    Team& team = collectives_.create(members(4), 0);
    collectives_.join(team, listener_);
    complete_everything(Status::ok);
    complete_everything(Status::ok);
    ASSERT_TRUE(team.complete());
    if (at_its_beginning) transport_.receives_until_exhausted = 0;
    EXPECT_EQ(collectives_.start(team, {.kind = Kind::barrier}, nullptr, true), Status::ok);
    transport_.destinations.clear();
    if (!at_its_beginning) {
      transport_.sends_until_exhausted = 1;
      for (void* const context : std::exchange(transport_.contexts, {}))
        collectives_.received(context, Status::ok, 0);
    }
    collectives_.advance();
    EXPECT_EQ(team.status(), Status::no_memory);
    complete_everything(Status::canceled);
    EXPECT_TRUE(team.operations().empty());
    EXPECT_EQ(collectives_.leave(team), Status::ok);
  }
}

/// No event of the protocol comes twice.
TEST_F(CollectivesTest, WhatTheProtocolSaysIsNotedWithoutMemory) {
  Team& team = collectives_.create(members(2 * kFewNodes), 0);
  collectives_.join(team, listener_);
  complete_operations(team);
  EXPECT_EQ(collectives_.start(team, {.kind = Kind::barrier}, nullptr, true), Status::ok);
  const std::vector<void*> contexts = std::exchange(transport_.contexts, {});
  {
    const cluster::test::FailingMemory memory(0);
    EXPECT_NO_THROW(for (void* const context : contexts) collectives_.received(context, Status::ok, 0));
    EXPECT_NO_THROW(collectives_.member_lost(team.address(3).name, Status::ended));
    EXPECT_NO_THROW(collectives_.wanted(TeamTag::failure_of(team.id()).bits(),
                                        static_cast<std::uint64_t>(Status::reset), true));
  }
  collectives_.advance();
  EXPECT_EQ(team.status(), Status::ended);
  EXPECT_TRUE(team.operations().empty());
}

TEST_F(CollectivesTest, AFailureForWhichThereIsNoMemoryIsSpreadLater) {
  Team& team = collectives_.create(members(2 * kFewNodes), 0);
  collectives_.join(team, listener_);
  complete_operations(team);
  EXPECT_EQ(collectives_.start(team, {.kind = Kind::barrier}, nullptr, true), Status::ok);
  const std::vector<void*> contexts = std::exchange(transport_.contexts, {});
  transport_.destinations.clear();
  collectives_.member_lost(team.address(3).name, Status::ended);
  transport_.cancels_until_exhausted = 0;
  EXPECT_THROW(collectives_.advance(), std::bad_alloc);
  EXPECT_TRUE(collectives_.pending());
  EXPECT_TRUE(transport_.canceled.empty());
  transport_.sends_until_exhausted = 2;
  EXPECT_THROW(collectives_.advance(), std::bad_alloc);
  EXPECT_TRUE(collectives_.pending());
  EXPECT_EQ(transport_.canceled.size(), 1u);
  collectives_.advance();
  EXPECT_GT(transport_.destinations.size(), 4u);
  for (void* const context : contexts) collectives_.received(context, Status::canceled, 0);
  collectives_.advance();
  EXPECT_TRUE(team.operations().empty());
  EXPECT_EQ(collectives_.leave(team), Status::ok);
}

/// The application would repeat a call that fails, and so begin another operation.
TEST_F(CollectivesTest, AnOperationThatHasBegunReportsWhatFindsNoMemory) {
  Team& team = collectives_.create(members(2 * kFewNodes), 0);
  transport_.receives_until_exhausted = 0;
  transport_.sends_until_exhausted = 2;
  EXPECT_NO_THROW(collectives_.join(team, listener_));
  EXPECT_TRUE(collectives_.pending());
  complete_everything(Status::canceled);
  EXPECT_EQ(listener_.outcomes, std::vector{Status::no_memory});
  EXPECT_EQ(collectives_.leave(team), Status::ok);
}

/// If a call fails here before it has sent anything, it does not exist for the other members.
TEST_F(CollectivesTest, ATeamThatFindsNoMemoryIsTheSameWhenItIsMadeAgain) {
  const std::uint64_t id = Team::identity(members(3), 0, 0);
  std::size_t refused = 0;
  for (std::size_t allowed = 0; collectives_.find(id) == nullptr; ++allowed) {
    std::vector<MemberAddress> all = members(3);
    try {
      const cluster::test::FailingMemory memory(allowed, 1);
      collectives_.create(std::move(all), 0);
    } catch (const std::bad_alloc&) {
      ++refused;
      collectives_.member_lost(members(3)[1].name, Status::ended);
    }
  }
  EXPECT_GT(refused, 2u);
}

}  // namespace
}  // namespace cluster::collective
