// What memory for bodies is used again.
#include "group/spare_bodies.h"

#include <gtest/gtest.h>

#include "group/receiver_stream.h"
#include "support/fake_environment.h"

namespace cluster::group {
namespace {

constexpr std::size_t kMax = 1000;

TEST(SpareBodiesTest, MemoryOfLongBodiesIsUsedAgain) {
  SpareBodies pool(kMax);
  SpareBodies::Body body = pool.take(kMax);
  const std::byte* const memory = body.get();
  pool.give(std::move(body), kMax);
  EXPECT_EQ(pool.take(kMax - 1).get(), memory);
}

TEST(SpareBodiesTest, WhatIsShortOrTooLongForItIsFreed) {
  SpareBodies pool(kMax);
  pool.give(pool.take(kMax), kMax);
  EXPECT_EQ(pool.spare(), 1u);
  pool.give(pool.take(kMax / 2), kMax / 2);
  pool.give(pool.take(kMax + 1), kMax + 1);
  EXPECT_EQ(pool.spare(), 1u);
}

TEST(SpareBodiesTest, KeepsNoMoreThanATurnMostlyBrings) {
  SpareBodies pool(kMax);
  std::vector<SpareBodies::Body> bodies;
  for (std::size_t i = 0; i < 3 * SpareBodies::kSpareMax; ++i) bodies.push_back(pool.take(kMax));
  for (SpareBodies::Body& body : bodies) pool.give(std::move(body), kMax);
  EXPECT_EQ(pool.spare(), SpareBodies::kSpareMax);
}

TEST(SpareBodiesTest, AStreamGivesBackWhatItHasDelivered) {
  SpareBodies pool(kMax);
  test::FakeRandom random;
  ReceiverStream stream(5, 0, random, pool);
  const std::byte body[kMax]{};
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(stream.receive(Time{1s}, {i, i + 1, body, false, ReceiverStream::Route::multicast, {}}, 3));
  }
  stream.consume(kMax);
  EXPECT_EQ(pool.spare(), 1u);
  stream.consume(kMax / 2);
  EXPECT_EQ(pool.spare(), 1u) << "the rest of it is still to be delivered";
  stream.consume(kMax / 2);
  EXPECT_EQ(pool.spare(), 2u);
}

}  // namespace
}  // namespace cluster::group
