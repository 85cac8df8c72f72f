#include "reliability/outage.h"

#include <gtest/gtest.h>

#include "reliability/liveness.h"

namespace cluster::reliability {
namespace {

/// What is forged says so first, and its answers are lost; then the network says so as well, for a while.
TEST(Outage, APeerThatWasAskedInVainLongAgoIsAskedAnewWhenAnOutageBegins) {
  const auto at = [](Duration since) { return Time{} + 1h + since; };
  Liveness liveness(5s);
  liveness.on_met(false);
  liveness.set_expecting(at(0s), true);
  for (Duration time = 0ms; time < 3s; time += 5ms) {
    if (time == 100ms) liveness.on_unproven_path_error(at(time));
    if (time >= 2s && time % 100ms == 0ms) liveness.on_path_error(at(time), Status::refused, true);
    ASSERT_EQ(liveness.check(at(time)), Status::ok) << time.count();
    if (!liveness.keep_alive_due(at(time))) continue;
    liveness.on_keep_alive_sent(at(time));
    if (time >= 2s) liveness.on_answer(at(time), at(time), Liveness::By::responder);
  }
}

}  // namespace
}  // namespace cluster::reliability
