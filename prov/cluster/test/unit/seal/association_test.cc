// How an association judges frames whose counter it has seen.
#include "seal/association.h"

#include <gtest/gtest.h>

#include <cstring>

#include "support/node.h"

namespace cluster::seal {
namespace {

constexpr std::size_t kPayload = 8;

struct Frame {
  wire::FrameHeader header{};
  std::array<std::byte, kPayload> payload{};
  wire::SealTrailer trailer{};
};
static_assert(sizeof(Frame) == sizeof(wire::FrameHeader) + kPayload + sizeof(wire::SealTrailer));

class AssociationTest : public ::testing::Test {
 protected:
  static Party party(const SocketAddress& name, std::uint8_t salt) {
    Party made;
    made.salt.fill(salt);
    made.addresses = {name};
    return made;
  }
  Association between(const Party& ours, const Party& peer) {
    return Association(credentials_.keys.front(), Mode::auth, ours, peer);
  }
  static Frame next(Association& from) {
    Frame frame;
    from.seal(as_bytes(&frame, sizeof frame));
    return frame;
  }
  static Association::Verdict open(Association& at, Frame frame) {
    return at.open({reinterpret_cast<std::byte*>(&frame), sizeof frame});
  }

  const Credentials credentials_ = test::credentials({"0123456789abcdef"}, Mode::auth);
  const Party a_ = party(test::kA, 1);
  const Party b_ = party(test::kB, 2);
  const Party b_before_ = party(test::kB, 3);
};

TEST_F(AssociationTest, TheSameFrameAgainIsAReplay) {
  Association a = between(a_, b_);
  Association b = between(b_, a_);
  const Frame frame = next(a);
  EXPECT_EQ(open(b, frame), Association::Verdict::genuine);
  EXPECT_EQ(open(b, frame), Association::Verdict::replayed);
}

/// Found by the simulator (seed 70292): a replayed request led a back to an earlier incarnation of b. b then
/// took a's frames for replays, and notified a of nothing.
TEST_F(AssociationTest, WhatIsSealedForAnEarlierIncarnationIsNoReplay) {
  Association a = between(a_, b_);
  Association b = between(b_, a_);
  ASSERT_EQ(open(b, next(a)), Association::Verdict::genuine);
  Association led_back = between(a_, b_before_);
  EXPECT_EQ(open(b, next(led_back)), Association::Verdict::forged);
}

}  // namespace
}  // namespace cluster::seal
