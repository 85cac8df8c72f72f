// Who is a stranger to a session, and who is not.
#include "sim/session_partners.h"

#include <gtest/gtest.h>

#include <vector>

#include "sim/test/opening_frame.h"

namespace cluster::sim {
namespace {

constexpr std::uint32_t kOurs = 1;
constexpr std::uint32_t kEarlierLife = 2;
constexpr std::uint32_t kLaterLife = 3;
constexpr std::uint32_t kOursAfterwards = 4;

class SessionPartnersTest : public testing::Test {
 protected:
  /// In a turn of its own, unless another frame is read at the same time.
  bool read(std::uint32_t to, std::uint32_t opening, bool same_turn = false) {
    const std::vector<std::byte> bytes = opening_frame(to, opening, wire::frame_flag::kAcknowledges);
    wire::FrameView view;
    EXPECT_EQ(wire::admit(bytes, view), wire::Refusal::none);
    if (!same_turn) turn += 1us;
    return partners.read(view, turn);
  }
  bool send(std::uint32_t to, std::uint32_t opening, std::uint8_t flags = wire::frame_flag::kAcknowledges) {
    const std::vector<std::byte> bytes = opening_frame(to, opening, flags);
    link::OutFrame out;
    out.add(bytes);
    return partners.sent(out);
  }

  SessionPartners partners;
  Time turn{};
};

TEST_F(SessionPartnersTest, WhoClaimsASessionAndIsAnsweredIsItsPartner) {
  read(kOurs, kLaterLife);
  send(kLaterLife, kNobody);
  read(kOurs, kLaterLife);
  EXPECT_FALSE(partners.take_stranger());
  read(kOurs, kEarlierLife);
  EXPECT_TRUE(partners.take_stranger());
  EXPECT_FALSE(partners.take_stranger());
}

TEST_F(SessionPartnersTest, WhoWasCalledBackIsThePartnerBeforeItClaimsAnything) {
  send(kEarlierLife, kOurs);
  read(kOurs, kLaterLife);
  EXPECT_TRUE(partners.take_stranger());
  send(kLaterLife, kNobody);
  read(kOurs, kEarlierLife);
  EXPECT_FALSE(partners.take_stranger());
}

TEST_F(SessionPartnersTest, AnIntroductionShowsNoBelief) {
  read(kOurs, kLaterLife);
  send(kLaterLife, kOurs, 0);
  read(kOurs, kEarlierLife);
  EXPECT_FALSE(partners.take_stranger());
}

TEST_F(SessionPartnersTest, WhoOnlyCallsIsNoStranger) {
  read(kOurs, kLaterLife);
  send(kLaterLife, kNobody);
  read(kNobody, kEarlierLife);
  EXPECT_FALSE(partners.take_stranger());
}

TEST_F(SessionPartnersTest, NobodysSessionBeginsAgain) {
  EXPECT_TRUE(send(kLaterLife, kOurs));
  EXPECT_TRUE(send(kLaterLife, kOurs));
  EXPECT_TRUE(send(kLaterLife, kOursAfterwards, 0)) << "an introduction begins nothing";
  EXPECT_TRUE(send(kEarlierLife, kOursAfterwards));
  EXPECT_FALSE(send(kLaterLife, kOursAfterwards));
}

TEST_F(SessionPartnersTest, AStrangerIsAloneInItsTurn) {
  send(kEarlierLife, kOurs);
  EXPECT_TRUE(read(kOurs, kEarlierLife));
  EXPECT_FALSE(read(kOurs, kLaterLife, true));
  EXPECT_FALSE(partners.take_stranger());
  EXPECT_TRUE(read(kOurs, kLaterLife));
  EXPECT_FALSE(read(kOurs, kEarlierLife, true)) << "neither before it nor behind it";
  EXPECT_TRUE(partners.take_stranger());
  EXPECT_TRUE(read(kOurs, kEarlierLife));
}

}  // namespace
}  // namespace cluster::sim
