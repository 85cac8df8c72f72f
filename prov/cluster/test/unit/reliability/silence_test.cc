// Peers that are silent though their processes exist.
#include "reliability/silence.h"

#include <gtest/gtest.h>

#include "reliability/liveness.h"

namespace cluster::reliability {
namespace {

constexpr Time moment(Duration since) { return Time(1000s) + since; }

/// As a rank does that computes: its responder answers, its engine does not.
TEST(Silence, OnlyAPeerOfWhichNothingAnswersIsReported) {
  using News = Silence::News;
  for (const bool responds : {true, false}) {
    Liveness liveness(5s, 0s, Liveness::Probes::of_met);
    liveness.on_met(true);
    liveness.set_expecting(moment(0s), true);
    std::size_t reported = 0;
    for (Duration time = 0s; time < 1min; time += 10ms) {
      if (liveness.probe_due(moment(time)))
        liveness.on_probe(moment(time), link::ProcessProbe::Answer::exists);
      if (liveness.keep_alive_due(moment(time))) {
        liveness.on_keep_alive_sent(moment(time));
        if (responds) liveness.on_answer(moment(time), moment(time), Liveness::By::responder);
      }
      EXPECT_EQ(liveness.check(moment(time)), Status::ok);
      if (liveness.silence().take_news() == News::none) continue;
      ++reported;
      EXPECT_EQ(time / 1s, Silence::kWorthALine / 1s);
    }
    EXPECT_EQ(reported, responds ? 0u : 1u);
    if (responds) continue;
    liveness.on_sign_of_life(moment(1min), false);
    EXPECT_LE(liveness.deadline(), moment(1min)) << "that is to be reported, too";
    EXPECT_EQ(liveness.silence().take_news(), News::over);
    EXPECT_GT(liveness.deadline(), moment(1min));
  }
}

}  // namespace
}  // namespace cluster::reliability
