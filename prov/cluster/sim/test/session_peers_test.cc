// Which frames come from a session's peer, and which from another process.
#include "sim/session_peers.h"

#include <gtest/gtest.h>

#include <vector>

#include "sim/test/opening_frame.h"

namespace cluster::sim {
namespace {

constexpr std::uint32_t kOurs = 1;
constexpr std::uint32_t kEarlierLife = 2;
constexpr std::uint32_t kLaterLife = 3;
constexpr std::uint32_t kOursAfterwards = 4;

class SessionPeersTest : public testing::Test {
 protected:
  /// In a turn of its own, unless another frame is read at the same time.
  bool read(std::uint32_t to, std::uint32_t opening, bool same_turn = false) {
    const std::vector<std::byte> bytes = opening_frame(to, opening, wire::frame_flag::kAcknowledges);
    wire::FrameView view;
    EXPECT_EQ(wire::admit(bytes, view), wire::Refusal::none);
    if (!same_turn) turn += 1us;
    return session_peers.read(view, turn);
  }
  bool send(std::uint32_t to, std::uint32_t opening, std::uint8_t flags = wire::frame_flag::kAcknowledges) {
    const std::vector<std::byte> bytes = opening_frame(to, opening, flags);
    link::OutFrame out;
    out.add(bytes);
    return session_peers.sent(out);
  }

  SessionPeers session_peers;
  Time turn{};
};

TEST_F(SessionPeersTest, WhoClaimsASessionAndIsAnsweredIsItsPartner) {
  read(kOurs, kLaterLife);
  send(kLaterLife, kNobody);
  read(kOurs, kLaterLife);
  EXPECT_FALSE(session_peers.take_wrong_peer());
  read(kOurs, kEarlierLife);
  EXPECT_TRUE(session_peers.take_wrong_peer());
  EXPECT_FALSE(session_peers.take_wrong_peer());
}

TEST_F(SessionPeersTest, WhoWasCalledBackIsThePartnerBeforeItClaimsAnything) {
  send(kEarlierLife, kOurs);
  read(kOurs, kLaterLife);
  EXPECT_TRUE(session_peers.take_wrong_peer());
  send(kLaterLife, kNobody);
  read(kOurs, kEarlierLife);
  EXPECT_FALSE(session_peers.take_wrong_peer());
}

TEST_F(SessionPeersTest, AnIntroductionShowsNoBelief) {
  read(kOurs, kLaterLife);
  send(kLaterLife, kOurs, 0);
  read(kOurs, kEarlierLife);
  EXPECT_FALSE(session_peers.take_wrong_peer());
}

TEST_F(SessionPeersTest, WhoOnlyCallsIsNoStranger) {
  read(kOurs, kLaterLife);
  send(kLaterLife, kNobody);
  read(kNobody, kEarlierLife);
  EXPECT_FALSE(session_peers.take_wrong_peer());
}

TEST_F(SessionPeersTest, NobodysSessionBeginsAgain) {
  EXPECT_TRUE(send(kLaterLife, kOurs));
  EXPECT_TRUE(send(kLaterLife, kOurs));
  EXPECT_TRUE(send(kLaterLife, kOursAfterwards, 0)) << "an introduction begins nothing";
  EXPECT_TRUE(send(kEarlierLife, kOursAfterwards));
  EXPECT_FALSE(send(kLaterLife, kOursAfterwards));
}

TEST_F(SessionPeersTest, AStrangerIsAloneInItsTurn) {
  send(kEarlierLife, kOurs);
  EXPECT_TRUE(read(kOurs, kEarlierLife));
  EXPECT_FALSE(read(kOurs, kLaterLife, true));
  EXPECT_FALSE(session_peers.take_wrong_peer());
  EXPECT_TRUE(read(kOurs, kLaterLife));
  EXPECT_FALSE(read(kOurs, kEarlierLife, true)) << "neither before it nor behind it";
  EXPECT_TRUE(session_peers.take_wrong_peer());
  EXPECT_TRUE(read(kOurs, kEarlierLife));
}

}  // namespace
}  // namespace cluster::sim
