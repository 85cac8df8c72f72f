// Which incarnation of a peer an opening belongs to.
#include "reliability/handshake.h"

#include <gtest/gtest.h>

#include <array>

namespace cluster::reliability {
namespace {

TEST(Handshake, TellsIncarnationsByEpoch) {
  wire::Opening opening;
  opening.epoch = 5;
  opening.session = 50;
  EXPECT_EQ(classify_opening(std::nullopt, opening), OpeningClass::fresh);
  EXPECT_EQ(classify_opening(PeerSession{5, 50}, opening), OpeningClass::same);
  EXPECT_EQ(classify_opening(PeerSession{4, 50}, opening), OpeningClass::newer);
  EXPECT_EQ(classify_opening(PeerSession{6, 60}, opening), OpeningClass::stale);
  EXPECT_EQ(classify_opening(PeerSession{5, 51}, opening), OpeningClass::stale);
}

class HandshakeTest : public ::testing::Test {
 protected:
  static SocketAddress address(int last) {
    const std::byte ip[] = {std::byte{10}, std::byte{0}, std::byte{0}, static_cast<std::byte>(last)};
    return SocketAddress::v4(ip, 9228);
  }
  static wire::Opening opening(int side) {
    wire::Opening made;
    made.name = address(side);
    made.session = 100 + static_cast<std::uint32_t>(side);
    made.token = 1000 + static_cast<std::uint64_t>(side);
    made.epoch = 1;
    return made;
  }
  /// A frame of side 2 to the session of side 1.
  static wire::FrameView answer(std::uint64_t echo) {
    wire::FrameView view;
    view.session = opening(1).session;
    view.has_opening = true;
    view.opening = opening(2);
    view.opening.echo = echo;
    return view;
  }

  Handshake handshake{opening(1)};
};

TEST_F(HandshakeTest, ThePeerIsLearntFromAFrameThatRepeatsTheToken) {
  EXPECT_EQ(handshake.opening().echo, 0u);
  EXPECT_FALSE(handshake.accept(answer(0), address(2)));
  EXPECT_FALSE(handshake.accept(answer(opening(1).token + 1), address(2)));
  EXPECT_FALSE(handshake.knows_peer());
  EXPECT_EQ(handshake.opening().echo, 0u);
  EXPECT_TRUE(handshake.accept(answer(opening(1).token), address(2)));
  EXPECT_TRUE(handshake.knows_peer());
  EXPECT_EQ(handshake.opening().echo, opening(2).token) << "so that the peer learns of this side likewise";
}

/// A wrong one makes tail loss probes of what is not lost, or lets what is lost wait.
TEST_F(HandshakeTest, HowLateAPeerAcknowledgesFollowsFromItsOpening) {
  const std::array<std::byte, sizeof(wire::RailBlock)> further{std::byte{4}};
  const auto delay = [&](std::uint32_t features, ConstBytes rails) {
    Handshake fresh(opening(1));
    EXPECT_EQ(fresh.peer_ack_delay(), kAckDelay);
    wire::FrameView view = answer(opening(1).token);
    view.opening.features = features;
    view.rails = rails;
    view.opening.rails = static_cast<std::uint8_t>(rails.size() / sizeof(wire::RailBlock));
    EXPECT_TRUE(fresh.accept(view, address(2)));
    return fresh.peer_ack_delay();
  };
  EXPECT_EQ(delay(0, {}), kAckDelay);
  EXPECT_EQ(delay(0, further), kAckDelay);
  EXPECT_EQ(delay(wire::feature::kAcksLate, {}), kAckDelayLate);
  EXPECT_EQ(delay(wire::feature::kAcksLate, further), kAckDelayOfRails);
}

TEST_F(HandshakeTest, AnAnswerRepeatsTheTokenOfItsCaller) {
  EXPECT_EQ(handshake.towards(opening(2)).opening().echo, opening(2).token);
  EXPECT_EQ(handshake.opening().echo, 0u) << "nothing is taken from a call";
}

/// Found by the simulator (seed 3546679316967713544): with its clock set back the peer's next incarnation is no later one.
TEST_F(HandshakeTest, NoPeerThatWasForgottenComesBack) {
  for (std::uint32_t life = 0; life < 3; ++life) {
    wire::FrameView next = answer(opening(1).token);
    next.opening.session += life;
    next.opening.epoch = 10 - life;
    ASSERT_TRUE(handshake.accept(next, address(2)));
    handshake.forget_peer();
    for (std::uint32_t earlier = 0; earlier <= life; ++earlier) {
      next.opening.session = opening(2).session + earlier;
      next.opening.epoch = 10 - earlier;
      EXPECT_FALSE(handshake.accept(next, address(2)));
    }
  }
}

TEST_F(HandshakeTest, APeerThatWasForgottenHasToRepeatTheTokenAgain) {
  ASSERT_TRUE(handshake.accept(answer(opening(1).token), address(2)));
  handshake.forget_peer();
  EXPECT_EQ(handshake.opening().echo, 0u);
  wire::FrameView next = answer(0);
  next.opening.epoch = 2;
  EXPECT_FALSE(handshake.accept(next, address(2)));
  next.opening.echo = opening(1).token;
  EXPECT_TRUE(handshake.accept(next, address(2)));
}

}  // namespace
}  // namespace cluster::reliability
