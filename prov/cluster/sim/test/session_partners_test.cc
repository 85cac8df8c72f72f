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

class SessionPartnersTest : public testing::Test {
 protected:
  void read(std::uint32_t to, std::uint32_t opening) {
    partners.read(opening_frame(to, opening, wire::frame_flag::kAcknowledges));
  }
  void send(std::uint32_t to, std::uint32_t opening, std::uint8_t flags = wire::frame_flag::kAcknowledges) {
    const std::vector<std::byte> bytes = opening_frame(to, opening, flags);
    link::OutFrame out;
    out.add(bytes);
    partners.sent(out);
  }

  SessionPartners partners;
};

TEST_F(SessionPartnersTest, WhoClaimsASessionAndIsAnsweredIsItsPartner) {
  read(kOurs, kLaterLife);
  send(kLaterLife, kNobody);
  read(kOurs, kLaterLife);
  EXPECT_EQ(partners.take_strangers(), 0u);
  read(kOurs, kEarlierLife);
  EXPECT_EQ(partners.take_strangers(), 1u);
  EXPECT_EQ(partners.take_strangers(), 0u);
}

TEST_F(SessionPartnersTest, WhoWasCalledBackIsThePartnerBeforeItClaimsAnything) {
  send(kEarlierLife, kOurs);
  read(kOurs, kLaterLife);
  send(kLaterLife, kNobody);
  read(kOurs, kEarlierLife);
  EXPECT_EQ(partners.take_strangers(), 1u) << "the later one, once";
}

TEST_F(SessionPartnersTest, AnIntroductionShowsNoBelief) {
  read(kOurs, kLaterLife);
  send(kLaterLife, kOurs, 0);
  read(kOurs, kEarlierLife);
  EXPECT_EQ(partners.take_strangers(), 0u);
}

TEST_F(SessionPartnersTest, WhoOnlyCallsIsNoStranger) {
  read(kOurs, kLaterLife);
  send(kLaterLife, kNobody);
  read(kNobody, kEarlierLife);
  EXPECT_EQ(partners.take_strangers(), 0u);
}

}  // namespace
}  // namespace cluster::sim
