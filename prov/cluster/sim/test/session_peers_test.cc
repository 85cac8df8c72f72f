// Which frames come from a session's peer, and which from another process.
#include "sim/session_peers.h"

#include <gtest/gtest.h>

#include <vector>

#include "sim/test/opening_frame.h"

namespace cluster::sim {
namespace {

constexpr std::uint32_t kOurs = 1;
constexpr std::uint32_t kEarlierIncarnation = 2;
constexpr std::uint32_t kLaterIncarnation = 3;
constexpr std::uint32_t kOursAfterwards = 4;

class SessionPeersTest : public testing::Test {
 protected:
  /// Reads a frame in a new turn, unless `same_turn` is true.
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

TEST_F(SessionPeersTest, ThePeerThatNamesASessionAndIsAnsweredHasIt) {
  read(kOurs, kLaterIncarnation);
  send(kLaterIncarnation, kNoSession);
  read(kOurs, kLaterIncarnation);
  EXPECT_FALSE(session_peers.take_wrong_peer());
  read(kOurs, kEarlierIncarnation);
  EXPECT_TRUE(session_peers.take_wrong_peer());
  EXPECT_FALSE(session_peers.take_wrong_peer());
}

TEST_F(SessionPeersTest, ThePeerThatWasAnsweredHasTheSessionBeforeItNamesIt) {
  send(kEarlierIncarnation, kOurs);
  read(kOurs, kLaterIncarnation);
  EXPECT_TRUE(session_peers.take_wrong_peer());
  send(kLaterIncarnation, kNoSession);
  read(kOurs, kEarlierIncarnation);
  EXPECT_FALSE(session_peers.take_wrong_peer());
}

TEST_F(SessionPeersTest, AnOpeningAloneAcceptsNoSession) {
  read(kOurs, kLaterIncarnation);
  send(kLaterIncarnation, kOurs, 0);
  read(kOurs, kEarlierIncarnation);
  EXPECT_FALSE(session_peers.take_wrong_peer());
}

TEST_F(SessionPeersTest, AnOpeningAloneIsNoWrongPeer) {
  read(kOurs, kLaterIncarnation);
  send(kLaterIncarnation, kNoSession);
  read(kNoSession, kEarlierIncarnation);
  EXPECT_FALSE(session_peers.take_wrong_peer());
}

TEST_F(SessionPeersTest, ASessionThatIsOverDoesNotBeginAgain) {
  EXPECT_TRUE(send(kLaterIncarnation, kOurs));
  EXPECT_TRUE(send(kLaterIncarnation, kOurs));
  EXPECT_TRUE(send(kLaterIncarnation, kOursAfterwards, 0)) << "an introduction begins nothing";
  EXPECT_TRUE(send(kEarlierIncarnation, kOursAfterwards));
  EXPECT_FALSE(send(kLaterIncarnation, kOursAfterwards));
}

TEST_F(SessionPeersTest, ASessionOfWhichNothingWasTakenMayBeginAgain) {
  EXPECT_TRUE(send(kLaterIncarnation, kOurs, wire::frame_flag::kSequenced));
  EXPECT_TRUE(send(kLaterIncarnation, kOursAfterwards, wire::frame_flag::kSequenced));
  EXPECT_TRUE(send(kLaterIncarnation, kNoSession)) << "from here on something is taken";
  EXPECT_FALSE(send(kLaterIncarnation, kOurs, wire::frame_flag::kSequenced));
}

TEST_F(SessionPeersTest, AFrameOfAWrongPeerIsTheOnlyOneInItsTurn) {
  send(kEarlierIncarnation, kOurs);
  EXPECT_TRUE(read(kOurs, kEarlierIncarnation));
  EXPECT_FALSE(read(kOurs, kLaterIncarnation, true));
  EXPECT_FALSE(session_peers.take_wrong_peer());
  EXPECT_TRUE(read(kOurs, kLaterIncarnation));
  EXPECT_FALSE(read(kOurs, kEarlierIncarnation, true)) << "neither before it nor behind it";
  EXPECT_TRUE(session_peers.take_wrong_peer());
  EXPECT_TRUE(read(kOurs, kEarlierIncarnation));
}

}  // namespace
}  // namespace cluster::sim
