// Several links as one: frames leave by the link that their path names, and arrive with its number.
#include "multipath/link_bundle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace cluster::multipath {
namespace {

SocketAddress rail_address(int last) {
  const std::byte ip[] = {std::byte{10}, std::byte{0}, std::byte{0}, static_cast<std::byte>(last)};
  return SocketAddress::v4(ip, 5000);
}

/// A link that records calls and delivers what the test put there.
struct FakeMember final : link::Link {
  const char* name() const override { return "fake"; }
  std::size_t frame_max() const override { return longest; }
  std::size_t send_burst(std::span<const link::OutFrame> frames) override {
    const std::size_t taken = std::min(frames.size(), capacity);
    capacity -= taken;
    for (const link::OutFrame& frame : frames.first(taken)) sent.push_back(frame.path->to);
    return taken;
  }
  std::size_t receive_burst(std::span<link::InFrame> frames) override {
    ++polls;
    const std::size_t count = std::min(frames.size(), waiting);
    waiting -= count;
    for (link::InFrame& frame : frames.first(count)) frame.from = {rail_address(9), {}, false};
    return count;
  }
  std::size_t read_path_errors(std::span<link::PathError> out) override {
    if (out.empty() || !has_error) return 0;
    has_error = false;
    out[0] = {rail_address(9), Status::refused};
    return 1;
  }
  std::vector<int> descriptors() const override { return descriptors_; }
  void before_sleep() override { ++sleeps; }

  std::size_t longest = 1472;
  std::size_t capacity = 1000;
  std::size_t waiting = 0;
  std::size_t polls = 0;
  std::size_t sleeps = 0;
  bool has_error = false;
  std::vector<SocketAddress> sent;
  std::vector<int> descriptors_;
};

struct BundleTest : testing::Test {
  BundleTest() : bundle(links()) {}

  std::vector<std::unique_ptr<link::Link>> links() {
    std::vector<std::unique_ptr<link::Link>> made;
    for (FakeMember*& member : members) {
      auto fake = std::make_unique<FakeMember>();
      member = fake.get();
      made.push_back(std::move(fake));
    }
    return made;
  }
  /// One frame for each path, in order.
  std::size_t send(std::span<const link::Path> paths) {
    std::vector<link::OutFrame> frames(paths.size());
    for (std::size_t i = 0; i < paths.size(); ++i) frames[i].path = &paths[i];
    return bundle.send_burst(frames);
  }
  std::vector<std::size_t> arrivals() {
    std::array<link::InFrame, 8> frames;
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0, count = bundle.receive_burst(frames); i < count; ++i) {
      numbers.push_back(frames[i].from.link);
    }
    std::sort(numbers.begin(), numbers.end());
    return numbers;
  }

  std::array<FakeMember*, 3> members{};
  LinkBundle bundle;
};

link::Path path(int to, std::uint8_t link) { return {rail_address(to), {}, false, link}; }

TEST_F(BundleTest, FramesLeaveByTheLinkOfTheirPath) {
  const link::Path paths[] = {path(1, 2), path(2, 2), path(3, 0), path(4, 2)};
  EXPECT_EQ(send(paths), 4u);
  EXPECT_EQ(members[0]->sent, std::vector{rail_address(3)});
  EXPECT_TRUE(members[1]->sent.empty());
  EXPECT_EQ(members[2]->sent, (std::vector{rail_address(1), rail_address(2), rail_address(4)}));
}

TEST_F(BundleTest, WhatOneDoesNotTakeHoldsUpWhatLiesBehindIt) {
  members[2]->capacity = 1;
  const link::Path paths[] = {path(1, 2), path(2, 2), path(3, 0)};
  EXPECT_EQ(send(paths), 1u);
  EXPECT_TRUE(members[0]->sent.empty()) << "frames are taken in order or not at all";
}

TEST_F(BundleTest, ArrivalsBearTheNumberOfTheirLink) {
  members[0]->waiting = 1;
  members[2]->waiting = 2;
  EXPECT_EQ(arrivals(), (std::vector<std::size_t>{0, 2, 2}));
  EXPECT_TRUE(arrivals().empty());
}

TEST_F(BundleTest, NoLinkStarvesBesideOneThatAlwaysHasFrames) {
  members[0]->waiting = 1000;
  members[1]->waiting = members[2]->waiting = 1;
  bool came[3] = {};
  for (std::size_t turn = 0; turn < members.size(); ++turn) {
    for (const std::size_t number : arrivals()) came[number] = true;
  }
  EXPECT_TRUE(came[0] && came[1] && came[2]);
}

TEST_F(BundleTest, AQuietLinkIsAskedSeldomUntilItBringsSomething) {
  for (int turn = 0; turn < 10'000; ++turn) {
    members[0]->waiting = 1;
    arrivals();
  }
  EXPECT_EQ(members[0]->polls, 10'000u);
  EXPECT_LT(members[1]->polls, 1'000u);
  EXPECT_GT(members[1]->polls, 500u) << "but it is asked";
  members[1]->waiting = 1;
  bool came = false;
  for (int turn = 0; turn < 100 && !came; ++turn) came = !arrivals().empty();
  ASSERT_TRUE(came);
  const std::size_t before = members[1]->polls;
  for (int turn = 0; turn < 100; ++turn) arrivals();
  EXPECT_EQ(members[1]->polls, before + 100);
}

TEST_F(BundleTest, WhereNothingComesAnywhereAllAreAsked) {
  for (int turn = 0; turn < 1'000; ++turn) arrivals();
  for (FakeMember* member : members) {
    const std::size_t before = member->polls;
    arrivals();
    EXPECT_EQ(member->polls, before + 1);
  }
}

TEST_F(BundleTest, EveryLinkIsPolledBeforeSleep) {
  for (int turn = 0; turn < 1'000; ++turn) arrivals();
  bundle.before_sleep();
  for (FakeMember* member : members) {
    EXPECT_EQ(member->sleeps, 1u);
    member->waiting = 1;
  }
  EXPECT_EQ(arrivals(), (std::vector<std::size_t>{0, 1, 2}));
}

TEST_F(BundleTest, TheLeastFrameSizeFitsAll) {
  members[1]->longest = 972;
  EXPECT_EQ(bundle.frame_max(), 972u);
}

TEST_F(BundleTest, OneLinkWithoutDescriptorsLeavesNone) {
  for (std::size_t i = 0; i < members.size(); ++i) members[i]->descriptors_ = {static_cast<int>(i), 7};
  EXPECT_EQ(bundle.descriptors(), (std::vector{0, 7, 1, 7, 2, 7}));
  members[1]->descriptors_.clear();
  EXPECT_TRUE(bundle.descriptors().empty());
}

TEST_F(BundleTest, ErrorsOfAllLinksAreReadAsFarAsTheyFit) {
  for (FakeMember* member : members) member->has_error = true;
  std::array<link::PathError, 2> errors;
  EXPECT_EQ(bundle.read_path_errors(errors), 2u);
  EXPECT_EQ(errors[1].link, 1u);
  EXPECT_EQ(bundle.read_path_errors(errors), 1u);
  EXPECT_EQ(errors[0].status, Status::refused);
  EXPECT_EQ(errors[0].link, 2u) << "the link that reported it";
}

}  // namespace
}  // namespace cluster::multipath
