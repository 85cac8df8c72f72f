// Who is a stranger to a session, and who is not.
#include "sim/session_partners.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "sim/sim_network.h"
#include "wire/admit.h"
#include "wire/frame.h"
#include "wire/opening.h"

namespace cluster::sim {
namespace {

constexpr std::uint32_t kNobody = 0;
constexpr std::uint32_t kOurs = 1;
constexpr std::uint32_t kEarlierLife = 2;
constexpr std::uint32_t kLaterLife = 3;

class SessionPartnersTest : public testing::Test {
 protected:
  void read(std::uint32_t to, std::uint32_t opening) {
    partners.read(frame(to, opening, wire::frame_flag::kAcknowledges));
  }
  void send(std::uint32_t to, std::uint32_t opening, std::uint8_t flags = wire::frame_flag::kAcknowledges) {
    const std::vector<std::byte> bytes = frame(to, opening, flags);
    link::OutFrame out;
    out.add(bytes);
    partners.sent(out);
  }

  SessionPartners partners;

 private:
  static std::vector<std::byte> frame(std::uint32_t to, std::uint32_t opening, std::uint8_t flags) {
    wire::OpeningBlock block;
    wire::Opening said;
    said.session = opening;
    said.epoch = opening;
    said.name = address_of(1);
    said.frame_max = 1472;
    said.window = 64;
    wire::encode(said, block);
    wire::FrameHeader header{};
    const std::size_t size = sizeof header + (opening != kNobody ? sizeof block : 0);
    header.magic = wire::kMagic;
    header.version = wire::kVersion;
    header.kind = static_cast<std::uint8_t>(wire::FrameKind::flow);
    header.flags = flags | (opening != kNobody ? wire::frame_flag::kOpening : 0);
    header.length = static_cast<std::uint16_t>(size);
    header.session = to;
    std::vector<std::byte> bytes(sizeof header + sizeof block);
    std::memcpy(bytes.data() + sizeof header, &block, sizeof block);
    bytes.resize(size);
    std::memcpy(bytes.data(), &header, sizeof header);
    const ConstBytes whole = bytes;
    header.checksum = wire::frame_checksum({&whole, 1});
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
  }
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
