// What several rails gain, in simulated time: a stream of large messages over ports of 1 Gbit/s.
#include <gtest/gtest.h>

#include "sim/measure.h"

namespace cluster::sim {
namespace {

constexpr std::size_t kMessage = 4 * 1024 * 1024;
constexpr std::uint32_t kSpreadMessages = 16;

Port gigabit_port() {
  Port port;
  port.bits_per_second = 1'000'000'000;
  port.delay = 5us;
  port.send_queue_bytes = port.switch_queue_bytes = 256 * 1024;
  return port;
}

Scenario stream() {
  Scenario scenario;
  scenario.plan = plain_plan(Pattern::one_way, kMessage, kSpreadMessages);
  scenario.plan.in_flight = 2;
  scenario.plan.receive_depth = 4;
  scenario.port = gigabit_port();
  return scenario;
}

Measured over(std::vector<Port> further) {
  Scenario scenario = stream();
  scenario.further_rails = std::move(further);
  return measure(scenario);
}

TEST(Rails, EqualOnesAddUp) {
  const double one = over({}).gigabits();
  const Measured two = over({gigabit_port()});
  const Measured four = over({3, gigabit_port()});
  EXPECT_GE(two.gigabits(), 1.9 * one);
  EXPECT_GE(four.gigabits(), 3.7 * one);
  EXPECT_LT(two.retransmitted_share(), 0.001);
  EXPECT_LT(four.retransmitted_share(), 0.001);
}

TEST(Rails, ASlowOneCarriesItsShareAndAFarOneAWholeOne) {
  const double one = over({}).gigabits();
  Port slow = gigabit_port();
  slow.bits_per_second /= 4;
  Port far = gigabit_port();
  far.delay *= 20;
  const Measured with_slow = over({slow});
  const Measured with_far = over({far});
  EXPECT_GE(with_slow.gigabits(), 1.2 * one);
  EXPECT_GE(with_far.gigabits(), 1.9 * one);
  EXPECT_LT(with_slow.retransmitted_share() + with_far.retransmitted_share(), 0.001);
}

TEST(Rails, OneThatIsCutCostsAShortDip) {
  const Duration alone = over({}).duration;
  const Duration together = over({gigabit_port()}).duration;
  Scenario scenario = stream();
  scenario.further_rails = {gigabit_port()};
  scenario.cut_at = Time{} + together / 2;
  const Measured cut = measure(scenario);
  EXPECT_LT(cut.duration, together / 2 + alone / 2 + 20ms);
  EXPECT_LT(cut.worst_stall, 20ms);
}

}  // namespace
}  // namespace cluster::sim
