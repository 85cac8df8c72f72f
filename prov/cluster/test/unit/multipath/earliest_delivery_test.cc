// Which path delivers the next frame first.
#include <gtest/gtest.h>

#include "multipath/path_manager.h"

namespace cluster::multipath {
namespace {

DeliveryEstimate estimate(Duration way, Duration each, std::size_t in_flight, std::size_t allowance) {
  return {true, true, way, each, in_flight, allowance};
}

TEST(EarliestDelivery, AnIdleFlowTakesTheFastest) {
  const DeliveryEstimate rails[] = {estimate(20us, 1us, 0, 8), estimate(5us, 1us, 0, 8)};
  EXPECT_EQ(earliest_delivery(rails), 1u);
}

TEST(EarliestDelivery, ABusyOneTakesWhatDeliversFirst) {
  const DeliveryEstimate rails[] = {estimate(20us, 1us, 0, 8), estimate(5us, 1us, 30, 8)};
  EXPECT_EQ(earliest_delivery(rails), 0u);
}

TEST(EarliestDelivery, AFastRailThatIsHeldBackIsWaitedFor) {
  const DeliveryEstimate much_slower[] = {estimate(200us, 10us, 4, 8), estimate(5us, 1us, 30, 0)};
  EXPECT_EQ(earliest_delivery(much_slower), std::nullopt);
  const DeliveryEstimate not_much[] = {estimate(40us, 1us, 4, 8), estimate(5us, 1us, 30, 0)};
  EXPECT_EQ(earliest_delivery(not_much), 0u);
}

TEST(EarliestDelivery, WhatIsNotKnownIsTriedAndWhatIsDownIsNot) {
  DeliveryEstimate rails[] = {estimate(5us, 1us, 0, 8), estimate(5us, 1us, 0, 8), estimate(1us, 1us, 0, 8)};
  rails[1].known = false;
  rails[2].up = false;
  EXPECT_EQ(earliest_delivery(rails), 1u);
  rails[1].in_flight = 8;
  EXPECT_EQ(earliest_delivery(rails), 0u);
}

}  // namespace
}  // namespace cluster::multipath
