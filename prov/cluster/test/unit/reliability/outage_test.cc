#include "reliability/outage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "reliability/liveness.h"

namespace cluster::reliability {
namespace {

constexpr Time moment(Duration since) { return Time{} + 1h + since; }

/// From one moment to another, in which there is no verdict: this side is there all the time, as an engine is.
void run_between(Liveness& liveness, Time now, Time until) {
  for (; now < until; now = std::min(std::max(liveness.deadline(), now + 1ms), until)) {
    ASSERT_EQ(liveness.check(now), Status::ok);
    if (liveness.keep_alive_due(now)) liveness.on_keep_alive_sent(now);
  }
}

/// Where the peer's kernel cannot be asked, only the peer itself can say that an error is forged.
TEST(Outage, APeerWhosePortIsSaidToBeClosedIsAskedAtOnce) {
  Liveness liveness(5s);
  liveness.on_met(false);
  liveness.set_expecting(moment(0s), true);
  for (Time now = moment(10ms); now < moment(2s); now += 5ms) {
    liveness.on_path_error(now, Status::refused, true);
    ASSERT_EQ(liveness.check(now), Status::ok);
    if (!liveness.keep_alive_due(now)) continue;
    liveness.on_keep_alive_sent(now);
    liveness.on_answer(now, now, Liveness::By::responder);
  }
}

TEST(Outage, AnAnswerToWhatWasAskedBeforeAPathErrorDoesNotRefuteIt) {
  for (const Duration asked : {90ms, 150ms}) {
    Liveness liveness(5s);
    liveness.on_met(false);
    liveness.set_expecting(moment(0s), true);
    for (Duration time = 100ms; time <= 500ms; time += 10ms) {
      if (time % 50ms == 0ms) liveness.on_path_error(moment(time), Status::refused, true);
      if (liveness.keep_alive_due(moment(time))) liveness.on_keep_alive_sent(moment(time));
      if (time == 200ms) liveness.on_answer(moment(time), moment(asked), Liveness::By::responder);
    }
    EXPECT_EQ(liveness.check(moment(500ms)), asked < 100ms ? Status::refused : Status::ok);
  }
}

/// Kernels report an outage that lasts once a second.
TEST(Outage, PathErrorsThatFollowEachOtherEndTheSession) {
  for (const auto& [error, seconds] : {std::pair{Status::refused, 1}, std::pair{Status::unreachable, 3}}) {
    Liveness liveness(100s);
    liveness.set_expecting(moment(0s), true);
    for (int second = 0; second < seconds; ++second) {
      EXPECT_TRUE(liveness.on_path_error(moment(1s * second), error, false)) << "sent again soon";
      EXPECT_EQ(liveness.check(moment(1s * second)), Status::ok) << second;
      run_between(liveness, moment(1s * second), moment(1s * (second + 1)));
    }
    EXPECT_FALSE(liveness.on_path_error(moment(1s * seconds), error, false));
    EXPECT_EQ(liveness.check(moment(1s * seconds)), error);
  }
}

TEST(Outage, PathErrorsFarApartAreNotOneOutage) {
  Liveness liveness(100s);
  liveness.set_expecting(moment(0s), true);
  for (int i = 0; i < 20; ++i)
    EXPECT_TRUE(liveness.on_path_error(moment(2600ms * i), Status::refused, false)) << i;
  EXPECT_EQ(liveness.check(moment(52s)), Status::ok);
}

TEST(Outage, ASignOfLifeAnOpeningOrAnAnswerEndsAnOutage) {
  const auto outage = [](auto&& end) {
    Liveness liveness(100s);
    liveness.set_expecting(moment(0s), true);
    liveness.on_path_error(moment(0s), Status::refused, false);
    run_between(liveness, moment(0s), moment(900ms));
    liveness.on_path_error(moment(900ms), Status::refused, false);
    end(liveness);
    run_between(liveness, moment(900ms), moment(940ms));
    liveness.on_path_error(moment(1100ms), Status::refused, false);
    return liveness.check(moment(1100ms));
  };
  EXPECT_EQ(outage([](Liveness&) {}), Status::refused);
  EXPECT_EQ(outage([](Liveness& liveness) { liveness.on_sign_of_life(moment(1s), false); }), Status::ok);
  EXPECT_EQ(outage([](Liveness& liveness) { liveness.on_sign_of_life(moment(1s), true); }), Status::refused)
      << "the EtherType path says nothing about the IP path";
  EXPECT_EQ(outage([](Liveness& liveness) { liveness.forget_path_errors(); }), Status::ok);
  EXPECT_EQ(outage([](Liveness& liveness) {
              liveness.set_expecting(moment(1s), false);
              liveness.set_expecting(moment(1s), true);
            }),
            Status::ok);
}

/// Found by the simulator (siege): a process calls one that is just starting, and is then stopped. A second
/// later it reads the error that the kernel kept: the port was closed.
TEST(Outage, PathErrorsFromBeforeAndDuringAStopOfThisSideEndNothing) {
  Liveness liveness(5s);
  liveness.set_expecting(moment(0s), true);
  liveness.on_path_error(moment(10ms), Status::refused, false);
  EXPECT_EQ(liveness.check(moment(20ms)), Status::ok);
  liveness.on_path_error(moment(2s), Status::refused, false);
  EXPECT_EQ(liveness.check(moment(2s)), Status::ok) << "it has had no time to answer";
  EXPECT_TRUE(liveness.keep_alive_due(moment(2s)));
  for (Time now = moment(2s); now < moment(3s); now += 10ms) {
    if (now == moment(2500ms)) liveness.on_path_error(now, Status::refused, false);
    if (liveness.check(now) != Status::refused) continue;
    EXPECT_GE(now, moment(2900ms));
    return;
  }
  ADD_FAILURE() << "what is true for so long is believed";
}

/// First a forged error says so, and the answers to it are lost; then the network says so too, for a while.
TEST(Outage, APeerThatWasAskedInVainLongAgoIsAskedAnewWhenAnOutageBegins) {
  Liveness liveness(5s);
  liveness.on_met(false);
  liveness.set_expecting(moment(0s), true);
  for (Duration time = 0ms; time < 3s; time += 5ms) {
    if (time == 100ms) liveness.on_unproven_path_error(moment(time));
    if (time >= 2s && time % 100ms == 0ms) liveness.on_path_error(moment(time), Status::refused, true);
    ASSERT_EQ(liveness.check(moment(time)), Status::ok) << time.count();
    if (!liveness.keep_alive_due(moment(time))) continue;
    liveness.on_keep_alive_sent(moment(time));
    if (time >= 2s) liveness.on_answer(moment(time), moment(time), Liveness::By::responder);
  }
}

}  // namespace
}  // namespace cluster::reliability
