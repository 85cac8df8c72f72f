// The pool of frame bodies: bodies of each size are used again, in any number.
#include "reliability/frame_body.h"

#include <gtest/gtest.h>

#include <vector>

namespace cluster::reliability {
namespace {

TEST(BodyPoolTest, ReturnsTheBodyThatWasGivenLast) {
  BodyPool pool{1472};
  std::unique_ptr<FrameBody> first = pool.take(), second = pool.take(), slim = pool.take_slim();
  const FrameBody* const expected[] = {second.get(), first.get()};
  const FrameBody* const expected_slim = slim.get();
  second->tokens.push_back(1);
  pool.give(std::move(first));
  pool.give(std::move(slim));
  pool.give(std::move(second));
  for (const FrameBody* const body : expected) {
    first = pool.take();
    EXPECT_EQ(first.get(), body);
    EXPECT_TRUE(first->tokens.empty());
    EXPECT_EQ(first->next, nullptr);
    second = std::move(first);
  }
  EXPECT_EQ(pool.take_slim().get(), expected_slim);
}

TEST(BodyPoolTest, KeepsALimitedNumber) {
  constexpr std::size_t kMany = 5000;
  std::vector<std::unique_ptr<FrameBody>> bodies(kMany);
  BodyPool pool{1472};
  for (auto& body : bodies) body = pool.take_slim();
  const FrameBody* const first = bodies.front().get();
  const FrameBody* const last = bodies.back().get();
  for (auto& body : bodies) pool.give(std::move(body));
  for (auto& body : bodies) body = pool.take_slim();
  bool has_first = false, has_last = false;
  for (std::size_t i = 0; i < 1024; ++i) {
    has_first |= bodies[i].get() == first;
    has_last |= bodies[i].get() == last;
  }
  EXPECT_TRUE(has_first);
  EXPECT_FALSE(has_last) << "it was freed";
}

}  // namespace
}  // namespace cluster::reliability
