// Which incarnation of a peer an opening belongs to.
#include "reliability/handshake.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace cluster::reliability
