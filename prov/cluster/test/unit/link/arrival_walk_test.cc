// Where the frames of an arrival begin and end: the kernel's word counts, not that of a frame.
#include <gtest/gtest.h>

#include <array>

#include "link/link.h"

namespace cluster::link {
namespace {

class Walk : public ::testing::Test {
 protected:
  ArrivalWalk walk(std::size_t size, std::size_t segment) {
    InFrame arrival;
    arrival.bytes = Bytes(memory_).first(size);
    arrival.segment = segment;
    return ArrivalWalk(arrival);
  }
  std::size_t at(const ArrivalWalk& walk) const {
    return static_cast<std::size_t>(walk.datagram().data() - memory_.data());
  }

  std::array<std::byte, 1000> memory_{};
};

TEST_F(Walk, OneDatagramIsAllOfItsArrival) {
  ArrivalWalk one = walk(300, 0);
  EXPECT_EQ(one.datagram().size(), 300u);
  EXPECT_EQ(one.run(100).size(), 300u) << "several frames may lie in it";
  one.pass(1, 100);
  EXPECT_EQ(one.datagram().size(), 200u);
  one.pass_datagram();
  EXPECT_TRUE(one.done());
}

TEST_F(Walk, WhatLiesBehindAFrameEndsWithTheArrival) {
  const ArrivalWalk train = walk(250, 100);
  EXPECT_EQ(train.behind(100).data(), &memory_[100]);
  EXPECT_EQ(train.behind(100).size(), 100u);
  EXPECT_EQ(train.behind(200).size(), 50u);
  EXPECT_TRUE(train.behind(250).empty());
}

TEST_F(Walk, NothingArrived) {
  EXPECT_TRUE(walk(0, 0).done() && walk(0, 100).done() && ArrivalWalk().done());
}

TEST_F(Walk, EachFrameOfATrainLiesInItsDatagram) {
  ArrivalWalk train = walk(350, 100);
  for (std::size_t begin : {0u, 100u, 200u}) {
    EXPECT_EQ(at(train), begin);
    EXPECT_EQ(train.datagram().size(), 100u);
    train.pass(1, 100);
  }
  EXPECT_EQ(train.datagram().size(), 50u) << "the last one may be shorter";
  train.pass(1, 50);
  EXPECT_TRUE(train.done());
}

TEST_F(Walk, ARefusedFrameTakesTheRestOfItsDatagramAlone) {
  ArrivalWalk train = walk(350, 100);
  train.pass_datagram();
  EXPECT_EQ(at(train), 100u);
  train.pass(1, 40);
  EXPECT_EQ(train.datagram().size(), 60u) << "a frame may lie behind another one in a datagram";
  train.pass_datagram();
  EXPECT_EQ(at(train), 200u);
  train.pass_refused(40);
  EXPECT_EQ(at(train), 300u) << "what a refused frame says of itself does not count";
  train.pass_refused(40);
  EXPECT_TRUE(train.done());
}

TEST_F(Walk, WithoutTheKernelsWordARefusedFrameMayBePassedByItsOwn) {
  ArrivalWalk unknown = walk(300, 0);
  unknown.pass_refused(100);
  EXPECT_EQ(at(unknown), 100u);
  EXPECT_EQ(unknown.datagram().size(), 200u);
}

TEST_F(Walk, OnlyWholeDatagramsFollowEachOtherInARun) {
  ArrivalWalk train = walk(350, 100);
  EXPECT_EQ(train.run(100).size(), 350u);
  EXPECT_EQ(train.run(50).size(), 100u) << "frames of another length end with their datagram";
  train.pass(2, 100);
  EXPECT_EQ(at(train), 200u);
  EXPECT_EQ(train.datagram().size(), 100u);
  train.pass(2, 50);
  EXPECT_EQ(train.datagram().size(), 50u);
}

TEST_F(Walk, ASegmentLongerThanTheArrivalIsOneDatagram) {
  const ArrivalWalk one = walk(80, 100);
  EXPECT_EQ(one.datagram().size(), 80u);
}

}  // namespace
}  // namespace cluster::link
