// The stream of a group's sender may carry only the group's kind of messages: those of the application or
// those of collectives.
#include "protocol/group_protocol.h"

#include "support/messenger_pair.h"

namespace cluster::protocol {
namespace {

using wire::SegmentKind;
namespace flag = wire::segment_flag;

class GroupProtocolTest : public MessengerTest {
 protected:
  using Content = GroupProtocol::Content;

  void arrive(const wire::Segment& segment, ConstBytes payload, Content content = Content::application) {
    ASSERT_TRUE(group.ready(right.channel, segment, content)) << "the stream would stand still";
    group.arrive(right.channel, assembly, segment, payload, content);
  }
  /// A receive that must get no message of the application.
  void receive_of_collective(std::vector<std::byte>& into, std::uint64_t tag, void* context) {
    const Bytes slices[] = {into};
    const RecvOp op{.slices = slices, .context = context, .tag = tag, .tagged = true, .internal = true};
    ASSERT_EQ(right.messenger.matcher().receive(&right.channel, op), Status::ok);
  }
  std::uint64_t refused() const { return right.counters.refused_segment; }

  GroupProtocol group{right.messenger};
  Assembly assembly;
  std::vector<std::byte> target = std::vector<std::byte>(64);
};

TEST_F(GroupProtocolTest, AMessageMatchesAReceive) {
  int context;
  receive(right, target, 9, 0, &context);
  const auto bytes = pattern(64);
  arrive({.kind = SegmentKind::eager, .flags = flag::kTagged, .tag = 9}, bytes);
  EXPECT_EQ(outcome(right).context, &context);
  EXPECT_EQ(target, bytes);
  EXPECT_EQ(refused(), 0u);
}

TEST_F(GroupProtocolTest, AMessageOfACollectiveIsRefused) {
  int application, collective;
  receive(right, target, 9, 0, &application);
  std::vector<std::byte> other(64);
  receive_of_collective(other, 9, &collective);
  constexpr std::uint8_t kFlags = flag::kTagged | flag::kInternal;
  arrive({.kind = SegmentKind::eager, .flags = kFlags, .tag = 9}, pattern(64));
  EXPECT_EQ(refused(), 1u);
  arrive({.kind = SegmentKind::eager_first, .flags = kFlags, .total = 128, .tag = 9}, pattern(64));
  EXPECT_EQ(refused(), 2u);
  // Whatever length it claims, it does not wait for a receive, which might never come.
  arrive({.kind = SegmentKind::eager_first, .flags = kFlags, .total = kGroupUnexpectedMax + 1, .tag = 8},
         pattern(64));
  EXPECT_EQ(refused(), 3u);
  EXPECT_FALSE(assembly.active());
  EXPECT_EQ(right.messenger.matcher().stored(), 0u);
  EXPECT_TRUE(right.take().empty());
  EXPECT_EQ(target, std::vector<std::byte>(64)) << "neither receive got it";
  EXPECT_EQ(other, std::vector<std::byte>(64));
}

TEST_F(GroupProtocolTest, TheStreamOfATeamHasMessagesOfCollectivesAlone) {
  int application, collective;
  receive(right, target, 9, 0, &application);
  std::vector<std::byte> other(64);
  receive_of_collective(other, 9, &collective);
  arrive({.kind = SegmentKind::eager, .flags = flag::kTagged, .tag = 9}, pattern(64), Content::collectives);
  EXPECT_EQ(refused(), 1u);
  EXPECT_EQ(target, std::vector<std::byte>(64));
  EXPECT_EQ(other, std::vector<std::byte>(64));
}

TEST_F(GroupProtocolTest, WhatNoSenderOfAGroupSendsIsRefused) {
  arrive({.kind = SegmentKind::eager, .flags = flag::kTagged | flag::kConfirm, .tag = 9}, pattern(8));
  arrive({.kind = SegmentKind::eager_next}, pattern(8));
  arrive({.kind = SegmentKind::announce, .flags = flag::kTagged, .id = 1, .total = 8, .tag = 9}, {});
  EXPECT_EQ(refused(), 3u);
  EXPECT_EQ(right.messenger.matcher().stored(), 0u);
}

TEST_F(GroupProtocolTest, ALongMessageWaitsForItsReceive) {
  const wire::Segment first{
      .kind = SegmentKind::eager_first, .flags = flag::kTagged, .total = kGroupUnexpectedMax + 1, .tag = 9};
  EXPECT_FALSE(group.ready(right.channel, first, Content::application));
  receive(right, target, 9);
  EXPECT_TRUE(group.ready(right.channel, first, Content::application));
}

}  // namespace
}  // namespace cluster::protocol
