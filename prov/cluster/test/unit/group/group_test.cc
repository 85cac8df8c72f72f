// One membership as its caller sees it: what is still sent to a member that leaves, and when it is forgotten.
#include "group/group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <new>

#include "support/fake_environment.h"
#include "support/queue_carrier.h"
#include "support/recording_link.h"

namespace cluster::group {
namespace {

using test::QueueCarrier;
using wire::Segment;
using wire::SegmentKind;

constexpr std::uint64_t kKey = 77;
constexpr std::uint32_t kStream = 5, kItsStream = 9;
constexpr Time kNow{1s};
constexpr Segment kNoMember{.kind = SegmentKind::group_end, .id = kStream, .key = kKey};

class GroupTest : public ::testing::Test {
 protected:
  GroupTest() {
    member().owner = &carrier_;
    group_.on_segment(
        kNow, member(),
        {.kind = SegmentKind::group_join, .id = kItsStream, .offset = 1, .total = 3, .key = kKey}, {});
    group_.on_segment(
        kNow, member(),
        {.kind = SegmentKind::group_start, .id = kItsStream, .offset = 0, .total = 1, .key = kKey}, {});
    group_.run(kNow, nullptr);
  }

  Member& member() { return *group_.find(name_); }
  bool sent(SegmentKind kind) const {
    return std::any_of(carrier_.items.begin(), carrier_.items.end(),
                       [&](const auto& item) { return item.segment.kind == kind; });
  }

  SocketAddress name_ = SocketAddress::v4(as_bytes("\x0a\0\0\2", 4).data(), 7000);
  QueueCarrier carrier_;
  test::FakeRandom random_;
  Group group_{{.key = kKey, .path = {}, .role = {}, .roster = {name_}, .body_max = 1000, .incarnation = 1},
               kStream,
               random_};
  Member& met_ = group_.meet(name_, nullptr, &carrier_);
};

TEST_F(GroupTest, AMemberThatMetThisOneCompletesIt) {
  EXPECT_TRUE(group_.complete());
  EXPECT_TRUE(sent(SegmentKind::group_join));
}

/// A host replays one of an earlier process of that name, whose stream may have the same number by chance.
TEST_F(GroupTest, AFrameOfAnotherMembershipIsNotTaken) {
  wire::FrameView view;
  view.kind = wire::FrameKind::group;
  view.session = kItsStream;
  view.transmission = {static_cast<std::uint32_t>(kKey)};
  view.segments = as_bytes("a body", 6);
  view.ack = {1};
  view.largest_acked = {2};
  EXPECT_FALSE(group_.on_frame(kNow, view, name_, Duration::zero()));
  EXPECT_EQ(member().stream->arrived(), 0u);
  view.largest_acked = {1};
  EXPECT_TRUE(group_.on_frame(kNow, view, name_, Duration::zero()));
  EXPECT_EQ(member().stream->arrived(), 1u);
}

/// An announcement in the name of an endpoint that is no member must not keep others from joining.
TEST_F(GroupTest, OneThatAnswersThatItIsNoMemberIsNotWaitedFor) {
  Group group{{.key = kKey, .path = {}, .role = {}, .roster = {}, .body_max = 1000, .incarnation = 1},
              kStream,
              random_};
  Member& announced = group.meet(name_, nullptr, &carrier_);
  test::RecordingLink link;
  Time now = kNow;
  for (; now < kNow + 1s; now += 1ms) group.run(now, &link);  // the present members have had time to answer
  EXPECT_FALSE(group.complete());
  group.on_segment(now, announced, kNoMember, {});
  EXPECT_TRUE(group.complete());
  // It joins later: then it has to hear of this membership again.
  carrier_.items.clear();
  group.on_segment(now, announced,
                   {.kind = SegmentKind::group_join, .id = kItsStream, .offset = 1, .total = 3, .key = kKey},
                   {});
  group.run(now, &link);
  EXPECT_TRUE(sent(SegmentKind::group_join));
}

/// The answer to this side's join was sent before the other one joined, and comes behind what it sent then.
TEST_F(GroupTest, AJoinThatOvertakesTheAnswerOfANonMemberIsAnsweredWithAnother) {
  Group group{{.key = kKey,
               .path = {},
               .role = {.sends = false},
               .roster = {name_},
               .body_max = 1000,
               .incarnation = 1},
              kStream,
              random_};
  Member& other = group.meet(name_, nullptr, &carrier_);
  group.run(kNow, nullptr);
  group.on_segment(kNow, other,
                   {.kind = SegmentKind::group_join, .id = kItsStream, .offset = 1, .total = 3, .key = kKey},
                   {});
  group.run(kNow, nullptr);
  carrier_.items.clear();
  group.on_segment(kNow, other, kNoMember, {});
  group.run(kNow, nullptr);
  EXPECT_TRUE(sent(SegmentKind::group_join));
}

/// No member sends anything when the last piece of a message has been cut.
TEST_F(GroupTest, OneThatComesInsideOfAMessageHearsOfItsStartAtTheEndOfThat) {
  const SocketAddress late_name = SocketAddress::v4(as_bytes("\x0a\0\0\3", 4).data(), 7000);
  QueueCarrier late_carrier;
  test::RecordingLink link;
  const std::vector<std::byte> bytes(100'000);  // several bursts
  const ConstBytes slice = bytes;
  group_.stream().post({}, {&slice, 1}, bytes.size(), true, Until::copied, 1);
  group_.run(kNow, &link);
  Member& late = group_.meet(late_name, nullptr, &late_carrier);
  group_.on_segment(kNow, late,
                    {.kind = SegmentKind::group_join, .id = 11, .offset = 1, .total = 3, .key = kKey}, {});
  group_.run(kNow, &link);
  const auto notified = [&] {
    return std::any_of(late_carrier.items.begin(), late_carrier.items.end(),
                       [](const auto& item) { return item.segment.kind == SegmentKind::group_start; });
  };
  ASSERT_FALSE(notified());
  ASSERT_FALSE(late.started);
  for (Time now = kNow; now < kNow + 20ms && !late.started; now += 100us) group_.run(now, &link);
  EXPECT_TRUE(late.started);
  EXPECT_TRUE(notified());
}

/// Otherwise each segment of each member would cost a walk through a thousand members.
TEST_F(GroupTest, ASegmentOfOneMemberIsNoReasonToServeTheOthers) {
  const SocketAddress other_name = SocketAddress::v4(as_bytes("\x0a\0\0\3", 4).data(), 7000);
  QueueCarrier other_carrier;
  Member& other = group_.meet(other_name, nullptr, nullptr);
  group_.run(kNow, nullptr);
  ASSERT_GT(group_.deadline(), kNow);
  other.carrier = &other_carrier;  // as if it were full until now
  group_.on_segment(kNow, member(), {.kind = SegmentKind::group_status, .id = kStream, .key = kKey}, {});
  EXPECT_LE(group_.deadline(), kNow);
  group_.run(kNow, nullptr);
  EXPECT_TRUE(other_carrier.items.empty());
  ASSERT_GT(group_.deadline(), kNow);
  group_.run(group_.deadline(), nullptr);
  EXPECT_EQ(other_carrier.items.size(), 1u) << "its join";
}

TEST_F(GroupTest, WhatWasPostedIsHandedOutUntilTheCallerHasTakenIt) {
  std::size_t count = 0;
  EXPECT_THROW(group_.take_posted([](Member&) { throw std::bad_alloc(); }), std::bad_alloc);
  group_.take_posted([&](Member&) { ++count; });
  group_.take_posted([&](Member&) { ++count; });
  EXPECT_EQ(count, 1u);
}

/// A member that ends the stream to this side is news, unless this side leaves itself and has refused to be asked.
TEST_F(GroupTest, OneThatLeavesIsNotExpelled) {
  constexpr Segment kItsEnd{.kind = SegmentKind::group_end, .id = kItsStream, .key = kKey};
  for (const bool leaves : {false, true}) {
    Group group{{.key = kKey, .path = {}, .role = {}, .roster = {name_}, .body_max = 1000, .incarnation = 1},
                kStream,
                random_};
    Member& other = group.meet(name_, nullptr, &carrier_);
    group.on_segment(
        kNow, other,
        {.kind = SegmentKind::group_join, .id = kItsStream, .offset = 1, .total = 3, .key = kKey}, {});
    group.on_segment(
        kNow, other,
        {.kind = SegmentKind::group_start, .id = kItsStream, .offset = 0, .total = 1, .key = kKey}, {});
    group.run(kNow, nullptr);
    if (leaves) group.leave();
    group.on_segment(kNow, other, kItsEnd, {});
    EXPECT_EQ(group.events().empty(), leaves);
  }
}

/// A carrier sends when the caller marks it, for which the caller has to find the member.
TEST_F(GroupTest, AMemberIsThereUntilTheCallerHasSeenThatTheLeaveWasPosted) {
  group_.take_posted([](Member&) {});
  group_.leave();
  group_.run(kNow, nullptr);
  ASSERT_TRUE(sent(SegmentKind::group_leave));
  ASSERT_NE(group_.find(name_), nullptr);
  EXPECT_TRUE(member().posted);
  EXPECT_FALSE(group_.left());
  EXPECT_LE(group_.deadline(), kNow);

  group_.take_posted([](Member&) {});
  group_.run(kNow, nullptr);
  EXPECT_EQ(group_.find(name_), nullptr);
  EXPECT_TRUE(group_.left());
}

}  // namespace
}  // namespace cluster::group
