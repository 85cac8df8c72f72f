// The two tables row by row, then what they do in the hands of an engine.
#include "reliability/liveness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace cluster::reliability {
namespace {

constexpr Time at(Duration since) { return Time{} + 1h + since; }

using Answer = link::ProcessProbe::Answer;

constexpr Duration kStep = 10ms;
constexpr Duration kTimeout = 5s;
constexpr Duration kStuck = 7s;

Duration limit_of(const Verdict& row) {
  if (row.lasts == kPeerTimeout) return kTimeout;
  return row.lasts == kStuckTimeout ? kStuck : row.lasts;
}

std::vector<PeerState> states_of(PeerState state) {
  if (state != PeerState::any) return {state};
  return {PeerState::unmet, PeerState::met};
}

/// At 0 the peer owes something, and is in this state.
void begin(Liveness& liveness, PeerState state) {
  if (state != PeerState::unmet) liveness.on_met(true);
  liveness.set_expecting(at(0s), true);
  if (state == PeerState::corroborated) liveness.on_probe(at(0s), Answer::exists);
}

/// Nothing else is said of the peer.
void say(Liveness& liveness, Suspicion suspicion, PeerState state, Time now) {
  const bool known = state != PeerState::unmet;
  switch (suspicion) {
    case Suspicion::silent: return;
    case Suspicion::stuck: return liveness.on_answer(now, now, Liveness::By::responder);
    case Suspicion::port_closed: liveness.on_path_error(now, Status::refused, known); return;
    case Suspicion::host_unreachable: liveness.on_path_error(now, Status::unreachable, known); return;
    case Suspicion::prohibited: liveness.on_path_error(now, Status::prohibited, known); return;
    case Suspicion::translated: liveness.on_path_error(now, Status::translated, known); return;
    case Suspicion::kernel_refuses: return liveness.on_probe(now, Answer::ended);
  }
}

class LivenessVerdicts : public ::testing::TestWithParam<Verdict> {};

TEST_P(LivenessVerdicts, ASuspicionThatLastsAsLongAsTheRowSaysEndsTheSession) {
  const Verdict& row = GetParam();
  for (const PeerState state : states_of(row.state)) {
    Liveness liveness(kTimeout, kStuck, Liveness::Probes::of_all);
    begin(liveness, state);
    Duration time = 0s;
    for (; time < 1min; time += kStep) {
      say(liveness, row.suspicion, state, at(time));
      if (liveness.check(at(time)) != Status::ok) break;
    }
    EXPECT_EQ(liveness.check(at(time)), row.status);
    EXPECT_GE(time, limit_of(row));
    EXPECT_LE(time, limit_of(row) + kStep);
  }
}

/// Half a minute of the outage comes before the suspicion, and the rest after it has begun.
TEST_P(LivenessVerdicts, InAnOutageASuspicionWaitsOrGoesOnAsTheRowSays) {
  const Verdict& row = GetParam();
  for (const PeerState state : states_of(row.state)) {
    Outage outage;
    Liveness liveness(kTimeout, kStuck, Liveness::Probes::of_all, &outage);
    outage.begin(at(-30s));
    begin(liveness, state);
    Duration time = 0s;
    for (; time < 1min && liveness.check(at(time)) == Status::ok; time += kStep) {
      if (time == 30s) outage.end(at(time));
      say(liveness, row.suspicion, state, at(time));
    }
    EXPECT_EQ(liveness.check(at(time)), row.status);
    const Duration waited = row.in_outage == InOutage::waits ? 30s : 0s;
    EXPECT_GE(time, waited + limit_of(row));
    EXPECT_LE(time, waited + limit_of(row) + 2 * kStep);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, LivenessVerdicts, ::testing::ValuesIn(kVerdicts));

/// Found by the simulator (seed 1739386900825755845): the endpoint took one turn after the other until the
/// outage was over.
TEST(Liveness, ATimeoutThatHasPassedWhenAnOutageBeginsIsNoDeadline) {
  Outage outage;
  Liveness liveness(5s, 0s, Liveness::Probes::none, &outage);
  liveness.set_expecting(at(0s), true);
  for (Duration time{}; time < 5s; time += 10ms)
    EXPECT_EQ(liveness.check(at(time)), Status::ok) << time / 1ms;
  outage.begin(at(5s));
  EXPECT_EQ(liveness.check(at(5s)), Status::ok);
  if (liveness.keep_alive_due(at(5s))) liveness.on_keep_alive_sent(at(5s));
  EXPECT_GT(liveness.deadline(), at(5s));
  outage.end(at(9s));
  EXPECT_EQ(liveness.check(at(9s)), Status::unreachable);
}

TEST(Liveness, ASilenceThatIsAlmostReachedWhenAnOutageBeginsIsNotAlwaysDue) {
  Outage outage;
  Liveness liveness(5s, 0s, Liveness::Probes::of_all, &outage);
  liveness.set_expecting(at(0s), true);
  outage.begin(at(250ms - 1us));
  int checks = 0;
  for (Time now = at(0s); now < at(10s); now = std::max(liveness.deadline(), now + 1ns), ++checks) {
    EXPECT_EQ(liveness.check(now), Status::ok);
    if (liveness.keep_alive_due(now)) liveness.on_keep_alive_sent(now);
    if (liveness.probe_due(now)) liveness.on_probe(now, link::ProcessProbe::Answer::none);
  }
  EXPECT_LE(checks, 100);
}

TEST(Liveness, TheSilenceFromBeforeAnOutageStands) {
  Outage outage;
  Liveness liveness(5s, 0s, Liveness::Probes::none, &outage);
  liveness.set_expecting(at(0s), true);
  for (Duration time = 0s; time < 3min; time += kStep) {
    if (time == 2s) outage.begin(at(time));
    if (time == 2min) outage.end(at(time));
    if (liveness.check(at(time)) == Status::ok) continue;
    EXPECT_GE(time, 2min + 3s);
    EXPECT_LE(time, 2min + 3s + 2 * kStep);
    EXPECT_GE(liveness.silent_for(), 2min) << "what the log reports";
    return;
  }
  ADD_FAILURE() << "never";
}

/// The switch of a met peer may be restarting: silence decides.
TEST(Liveness, AHostThatIsUnreachableForAMomentIsNotLostIfItHasAnswered) {
  Liveness liveness(5s);
  liveness.on_met(false);
  liveness.set_expecting(at(0s), true);
  for (Duration time = 0s; time < 4900ms; time += 100ms) {
    liveness.on_path_error(at(time), Status::unreachable, true);
    ASSERT_EQ(liveness.check(at(time)), Status::ok) << time.count();
  }
  liveness.on_sign_of_life(at(4900ms), false);
  EXPECT_EQ(liveness.check(at(9s)), Status::ok);
}

/// Of what is done to a peer that owes nothing only what is left when it owes again can be seen.
void show(Liveness& liveness, Evidence evidence, Time now) {
  switch (evidence) {
    case Evidence::frame: return liveness.on_sign_of_life(now, false);
    case Evidence::ethertype_frame: return liveness.on_sign_of_life(now, true);
    case Evidence::engine_answer: return liveness.on_answer(now, now - 1ms, Liveness::By::engine);
    case Evidence::responder_answer: return liveness.on_answer(now, now - 1ms, Liveness::By::responder);
    case Evidence::kernel_vouches: return liveness.on_probe(now, Answer::exists);
    case Evidence::opening: return liveness.forget_path_errors();
    case Evidence::owes_nothing:
    case Evidence::owes_again: liveness.set_expecting(now, false); return liveness.set_expecting(now, true);
  }
}

unsigned ended_by(const Refutation& row) {
  if (row.evidence != Evidence::owes_nothing && row.evidence != Evidence::owes_again) return row.ends;
  unsigned ends = 0;
  for (const Refutation& each : kRefutations)
    if (each.evidence == Evidence::owes_nothing || each.evidence == Evidence::owes_again) ends |= each.ends;
  return ends;
}

Status status_after(Liveness& liveness, Duration from, Duration until) {
  for (; from < until; from += kStep) liveness.check(at(from));
  return liveness.check(at(until));
}

bool silence_stands(Liveness& liveness, Evidence evidence) {
  status_after(liveness, 0s, 4s);
  show(liveness, evidence, at(4s));
  return status_after(liveness, 4s, 8s) != Status::ok;
}

/// This side looks all the time: errors from while it did not run count less.
bool errors_stand(Liveness& liveness, Evidence evidence, PeerState state, Status error) {
  const bool known = state == PeerState::met;
  const Duration tolerated = known ? kRefusedTolerated : kStartingTolerated;
  const Duration second = tolerated / 2 / kStep * kStep;
  const Duration shown = tolerated * 3 / 4 / kStep * kStep;
  const Duration last = tolerated + kStep;
  for (Duration time = 0s; time <= last; time += kStep) {
    if (time == shown) show(liveness, evidence, at(time));
    if (time == kStep || time == second || time == last) liveness.on_path_error(at(time), error, known);
    liveness.check(at(time));
  }
  return liveness.check(at(last)) != Status::ok;
}

/// A kernel that has refused is asked sooner again.
bool refusal_stands(Liveness& liveness, Evidence evidence) {
  liveness.on_probe(at(0s), Answer::ended);
  show(liveness, evidence, at(50ms));
  for (const Duration time : {60ms, 70ms}) liveness.on_probe(at(time), Answer::none);
  return liveness.probe_due(at(140ms));
}

class LivenessRefutations : public ::testing::TestWithParam<Refutation> {};

TEST_P(LivenessRefutations, EvidenceEndsWhatTheRowSaysAndNothingElse) {
  const Refutation& row = GetParam();
  const unsigned ends = ended_by(row);
  for (const PeerState state : states_of(row.state)) {
    const auto stands = [&](Duration timeout, Duration stuck, auto&& test) {
      Liveness liveness(timeout, stuck, Liveness::Probes::of_all);
      begin(liveness, state);
      return test(liveness);
    };
    EXPECT_EQ(
        stands(kTimeout, 0s, [&](Liveness& liveness) { return silence_stands(liveness, row.evidence); }),
        (ends & kSilence) == 0);
    EXPECT_EQ(
        stands(1h, kTimeout, [&](Liveness& liveness) { return silence_stands(liveness, row.evidence); }),
        (ends & kEngineSilence) == 0);
    EXPECT_EQ(stands(1h, 0s,
                     [&](Liveness& liveness) {
                       status_after(liveness, 0s, 4s);
                       show(liveness, row.evidence, at(4s));
                       return liveness.silent_for() > 3s;
                     }),
              (ends & kReported) == 0);
    const auto error_stands = [&](Status error) {
      return stands(1h, 0s,
                    [&](Liveness& liveness) { return errors_stand(liveness, row.evidence, state, error); });
    };
    EXPECT_EQ(error_stands(Status::refused), (ends & (kErrors | kErrorsOnce)) == 0);
    if (state == PeerState::unmet) {  // only then does it end a session
      EXPECT_EQ(error_stands(Status::translated), (ends & (kTranslation | kErrorsOnce)) == 0);
    }
    EXPECT_EQ(stands(kTimeout, 0s,
                     [&](Liveness& liveness) {
                       liveness.on_probe(at(0s), Answer::none);
                       show(liveness, row.evidence, at(50ms));
                       return !liveness.probe_over();
                     }),
              (ends & kProbe) == 0);
    if (state == PeerState::unmet) continue;  // its kernel's refusal means nothing
    EXPECT_EQ(
        stands(kTimeout, 0s, [&](Liveness& liveness) { return refusal_stands(liveness, row.evidence); }),
        (ends & kRefusal) == 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, LivenessRefutations, ::testing::ValuesIn(kRefutations));

/// As the engine does it: at each deadline the peer is checked, and sent a keep-alive if that is due.
Time idle_until_verdict(Liveness& liveness, Time now) {
  while (liveness.check(now) == Status::ok) {
    if (liveness.keep_alive_due(now)) liveness.on_keep_alive_sent(now);
    const Time next = liveness.deadline();
    EXPECT_GT(next, now) << "the timer would fire for ever";
    if (next <= now) break;
    now = next;
  }
  return now;
}

TEST(Liveness, APeerThatIsIdleForThePeerTimeoutIsUnreachable) {
  Liveness liveness(10s);
  liveness.set_expecting(at(0s), true);
  EXPECT_EQ(idle_until_verdict(liveness, at(0s)), at(10s));
  EXPECT_EQ(liveness.check(at(10s)), Status::unreachable);
}

/// By a host on the way, of a peer that has ended after two seconds.
TEST(Liveness, AnswersThatWereKeptFeignNoLife) {
  for (const auto by : {Liveness::By::responder, Liveness::By::engine}) {
    Liveness liveness(5s);
    liveness.on_met(false);
    liveness.set_expecting(at(0s), true);
    Time now = at(2s);
    for (Duration asked = 100ms; liveness.check(now) == Status::ok && asked <= 2s; now += 10ms) {
      if (now.time_since_epoch() % 1s != 0s) continue;
      liveness.on_answer(now, at(asked), by);
      asked += 100ms;
    }
    EXPECT_GE(now, at(5s)) << "what is true is believed";
    EXPECT_LE(now, at(7s));
  }
}

/// What firewalls and address translators know of a session ends after 30 s without a packet.
TEST(Liveness, APeerThatOwesNothingGetsAKeepAliveBeforeFirewallsForgetTheSession) {
  Liveness liveness(20s, 0s, Liveness::Probes::none, nullptr, 25s);
  EXPECT_EQ(liveness.deadline(), kNever) << "it has never answered";
  liveness.on_met(false);
  liveness.on_sign_of_life(at(10s), false);
  Time last = at(10s);
  for (int i = 0; i < 5; ++i) {
    const Time due = liveness.deadline();
    EXPECT_GT(due - last, 20s);
    EXPECT_LT(due - last, 30s);
    EXPECT_FALSE(liveness.keep_alive_due(due - 1ns));
    EXPECT_TRUE(liveness.keep_alive_due(due));
    EXPECT_EQ(liveness.check(due), Status::ok);
    liveness.on_keep_alive_sent(due);
    last = due;
  }
  liveness.on_sign_of_life(last + 20s, false);
  EXPECT_GT(liveness.deadline(), last + 40s) << "a session that is used needs none";
}

/// Found by the simulator (siege): a peer timeout of half a second, and the second question would have come
/// after it.
TEST(Liveness, APeerIsAskedSeveralTimesWithinAnyPeerTimeout) {
  for (const Duration timeout : {Duration(500ms), Duration(1s), Duration(5s)}) {
    Liveness liveness(timeout);
    liveness.on_met(false);
    liveness.set_expecting(at(0s), true);
    int asked = 0;
    for (Time now = at(0s); liveness.check(now) == Status::ok; now += 5ms) {
      if (!liveness.keep_alive_due(now)) continue;
      liveness.on_keep_alive_sent(now);
      ++asked;
    }
    EXPECT_GE(asked, 4) << timeout.count();
    EXPECT_LE(asked, 5) << timeout.count();
  }
}

TEST(Liveness, NothingIsExpectedOfAPeerThatOwesNothing) {
  Liveness liveness(10s);
  liveness.set_expecting(at(0s), true);
  liveness.set_expecting(at(1s), false);
  EXPECT_EQ(liveness.deadline(), kNever);
  EXPECT_FALSE(liveness.keep_alive_due(at(100s)));
  EXPECT_EQ(liveness.check(at(100s)), Status::ok);
}

/// The clock has gone on while this side was suspended.
TEST(Liveness, IdleTimeDuringASuspensionDoesNotCount) {
  for (const Duration timeout : {1s, 2s, 10s}) {
    Liveness liveness(timeout);
    liveness.set_expecting(at(0s), true);
    EXPECT_EQ(liveness.check(at(1h)), Status::ok) << timeout.count();
    const Time end = idle_until_verdict(liveness, at(1h));
    EXPECT_GE(end, at(1h + timeout - 50ms)) << "no time to answer";
    EXPECT_LE(end, at(1h + timeout));
  }
}

TEST(Liveness, ASignOfLifeBeginsTheIdleTimeAnew) {
  Liveness liveness(10s);
  liveness.set_expecting(at(0s), true);
  Time now = at(0s);
  for (const Time sign : {at(8s), at(16s), at(24s)}) {
    for (; now < sign; now = std::min(liveness.deadline(), sign)) {
      ASSERT_EQ(liveness.check(now), Status::ok);
      if (liveness.keep_alive_due(now)) liveness.on_keep_alive_sent(now);
    }
    liveness.on_sign_of_life(now, false);
  }
  EXPECT_EQ(idle_until_verdict(liveness, now), at(34s));
}

/// Each of two peers waits for a processor as long as the other.
TEST(Liveness, WhereTurnsComeLateAPeerHasMoreTimeToAnswer) {
  for (const auto probes : {Liveness::Probes::none, Liveness::Probes::of_all}) {  // nothing answers those
    const auto verdict_after = [probes](Duration late) {
      Liveness liveness(5s, 0s, probes);
      Time now = at(0s);
      liveness.set_expecting(now, true);
      while (liveness.check(now) == Status::ok && now < at(10min)) {
        if (liveness.keep_alive_due(now)) liveness.on_keep_alive_sent(now);
        if (liveness.probe_due(now)) liveness.on_probe(now, link::ProcessProbe::Answer::none);
        now = liveness.deadline() + late;
      }
      return now - at(0s);
    };
    EXPECT_LE(verdict_after(5ms), 5300ms);
    EXPECT_GE(verdict_after(500ms), 15s);
    EXPECT_LE(verdict_after(500ms), 5min) << "a node that is dead is missed all the same";
  }
}

TEST(Liveness, APathErrorMakesNothingOverdue) {
  Liveness liveness(5s, 0s, Liveness::Probes::of_all);
  liveness.set_expecting(at(0s), true);
  liveness.on_path_error(at(100ms), Status::refused, false);
  EXPECT_EQ(liveness.deadline(), at(100ms));
}

TEST(Liveness, SeveralKeepAlivesFitIntoThePeerTimeoutHoweverLateTurnsAre) {
  Liveness liveness(5s);
  liveness.set_expecting(at(0s), true);
  liveness.on_keep_alive_sent(at(250ms), 12s);
  EXPECT_TRUE(liveness.keep_alive_due(at(1500ms)));
}

/// As the engine does it, with a kernel that gives this answer; until the verdict, or for `limit`.
Time asked_until_verdict(Liveness& liveness, Time now, Time limit, Answer answer) {
  while (now < limit && liveness.check(now) == Status::ok) {
    if (liveness.probe_due(now)) liveness.on_probe(now, answer);
    if (liveness.keep_alive_due(now)) liveness.on_keep_alive_sent(now);
    const Time next = liveness.deadline();
    if (liveness.check(now) != Status::ok) break;
    EXPECT_GT(next, now) << "the timer would fire for ever";
    if (next <= now) break;
    now = next;
  }
  return now;
}

TEST(Liveness, AProcessThatIsStoppedLivesAsLongAsItsKernelSaysSo) {
  Liveness liveness(5s, 0s, Liveness::Probes::of_all);
  liveness.on_met(true);
  liveness.set_expecting(at(0s), true);
  const Time hour = asked_until_verdict(liveness, at(0s), at(1h), Answer::exists);
  EXPECT_EQ(liveness.check(hour), Status::ok);
  EXPECT_FALSE(liveness.probe_over());
  // The node goes down.
  EXPECT_LE(asked_until_verdict(liveness, hour, hour + 1min, Answer::none), hour + 5s);
  EXPECT_EQ(liveness.check(hour + 5s), Status::unreachable);
}

/// Found by the simulator (siege): the first two questions were lost, and the third would have been answered
/// after the peer timeout.
TEST(Liveness, AKernelIsAskedSeveralTimesWithinAnyPeerTimeout) {
  for (const Duration timeout : {Duration(100ms), Duration(500ms), Duration(1s), Duration(5s)}) {
    Liveness liveness(timeout, 0s, Liveness::Probes::of_all);
    liveness.set_expecting(at(0s), true);
    int asked = 0;
    for (Time now = at(0s); liveness.check(now) == Status::ok; now += 5ms) {
      if (!liveness.probe_due(now)) continue;
      liveness.on_probe(now, Answer::none);
      ++asked;
    }
    EXPECT_GE(asked, 4) << timeout.count();
    EXPECT_LE(asked, 25) << timeout.count();
  }
}

/// Nothing is known of a peer that was stopped before it was first called: something has its port, no more.
TEST(Liveness, AProcessThatWasStoppedBeforeItAnsweredIsNotUnreachableForAMinute) {
  Liveness liveness(5s, 0s, Liveness::Probes::of_all);
  liveness.set_expecting(at(0s), true);
  const Time end = asked_until_verdict(liveness, at(0s), at(1h), Answer::exists);
  EXPECT_GE(end, at(1min));
  EXPECT_LE(end, at(66s));
  EXPECT_EQ(liveness.check(end), Status::unreachable);
}

TEST(Liveness, OfAPeerThatHasNotAnsweredItsPortProvesNoMore) {
  Liveness refusing(5s, 0s, Liveness::Probes::of_all);
  refusing.set_expecting(at(0s), true);
  EXPECT_EQ(asked_until_verdict(refusing, at(0s), at(1h), Answer::ended), at(5s));
  EXPECT_EQ(refusing.check(at(5s)), Status::unreachable) << "it may have no such port";
  Liveness other(5s, 0s, Liveness::Probes::of_all);
  other.set_expecting(at(0s), true);
  other.on_path_error(at(0s), Status::refused, false);
  other.on_probe(at(0s), Answer::exists);
  for (Time now = at(0s); now < at(1s); now += 10ms) EXPECT_EQ(other.check(now), Status::ok);
  other.on_path_error(at(1s), Status::refused, false);
  EXPECT_EQ(other.check(at(1s)), Status::refused) << "another program may have it";
}

TEST(Liveness, BehindAKeyOnlyPeersThatHaveAnsweredAreAskedFor) {
  Liveness liveness(5s, 0s, Liveness::Probes::of_met);
  liveness.set_expecting(at(0s), true);
  EXPECT_FALSE(liveness.probe_due(at(4s)));
  EXPECT_EQ(asked_until_verdict(liveness, at(0s), at(1h), Answer::exists), at(5s));
}

TEST(Liveness, AKernelThatDoesNotAnswerIsNotAsked) {
  Liveness liveness(5s, 0s, Liveness::Probes::of_all);
  liveness.set_expecting(at(0s), true);
  liveness.on_met(false);
  EXPECT_FALSE(liveness.probe_due(at(4s)));
  EXPECT_EQ(idle_until_verdict(liveness, at(0s)), at(5s));
}

/// Whether or not a connection has stood: but if none has, a firewall may have refused it, and the peer be
/// silent for a moment.
TEST(Liveness, TheEndOfAProcessIsKnownBeforeASecondIsOver) {
  for (const bool stood : {false, true}) {
    Liveness liveness(5s, 0s, Liveness::Probes::of_all);
    liveness.on_met(true);
    liveness.set_expecting(at(0s), true);
    if (stood) liveness.on_probe(at(0s), Answer::exists);
    const Time end = asked_until_verdict(liveness, at(0s), at(10s), Answer::ended);
    EXPECT_GE(end, at(stood ? 0ms : 500ms));
    EXPECT_LE(end, at(stood ? 100ms : 600ms));
    EXPECT_EQ(liveness.check(end), Status::ended);
  }
}

TEST(Liveness, WhereANetworkAndAKernelAgreeAProcessHasEnded) {
  Liveness liveness(5s, 0s, Liveness::Probes::of_all);
  liveness.on_met(true);
  liveness.set_expecting(at(0s), true);
  liveness.on_path_error(at(100ms), Status::refused, true);
  liveness.on_probe(at(120ms), Answer::ended);
  EXPECT_EQ(liveness.check(at(120ms)), Status::ended);
}

/// The peer says nothing for almost half a second now and then, and a firewall answers for its kernel;
/// meanwhile others say that its port is closed.
TEST(Liveness, WhatAnyHostCanSayEndsNoPeerThatIsSilentForAMoment) {
  for (const bool kernel : {true, false}) {
    Liveness liveness(5s, 0s, Liveness::Probes::of_met);
    liveness.on_met(kernel);
    liveness.set_expecting(at(0s), true);
    for (Duration time = 0ms; time < 10s; time += 10ms) {
      if (time % 500ms == 0ms) liveness.on_sign_of_life(at(time), false);
      liveness.on_unproven_path_error(at(time));
      if (liveness.probe_due(at(time))) liveness.on_probe(at(time), Answer::ended);
      ASSERT_EQ(liveness.check(at(time)), Status::ok) << time.count();
    }
  }
}

/// A forger can provoke so many queries.
TEST(Liveness, AnErrorThatAnyHostCanHaveMadeDrawsAQuestionAtMostEach60Milliseconds) {
  Liveness liveness(5s, 0s, Liveness::Probes::of_met);
  liveness.on_met(true);
  liveness.set_expecting(at(0s), true);
  int asked = 0;
  for (Duration time = 0ms; time < 3s; time += 5ms) {
    liveness.on_unproven_path_error(at(time));
    EXPECT_FALSE(liveness.probe_due(at(time))) << "its kernel is left alone";
    if (!liveness.keep_alive_due(at(time))) continue;
    ++asked;
    liveness.on_keep_alive_sent(at(time));
    liveness.on_answer(at(time), at(time), Liveness::By::responder);
  }
  EXPECT_GE(asked, 40);
  EXPECT_LE(asked, 51);
}

/// Found by review: calls in the peer's name, each of which restarted the outage.
TEST(Liveness, AnOpeningEndsAnOutageOnce) {
  Liveness liveness(5s);
  liveness.set_expecting(at(0s), true);
  Duration time = 0ms;
  for (; liveness.check(at(time)) == Status::ok && time < 5s; time += 10ms) {
    liveness.on_path_error(at(time), Status::refused, false);
    if (time % 700ms == 600ms) liveness.forget_path_errors();
  }
  EXPECT_LE(time, 1600ms);
  EXPECT_EQ(liveness.check(at(time)), Status::refused);
}

TEST(Liveness, APathErrorMakesItAskAtOnceAndAKernelRefutesIt) {
  Liveness liveness(5s, 0s, Liveness::Probes::of_all);
  liveness.on_met(true);
  liveness.set_expecting(at(0s), true);
  for (int i = 0; i < 20; ++i) {
    liveness.on_path_error(at(50ms * i), Status::refused, true);
    ASSERT_TRUE(liveness.probe_due(at(50ms * i)) || i > 0);
    if (liveness.probe_due(at(50ms * i))) liveness.on_probe(at(50ms * i), Answer::exists);
    ASSERT_EQ(liveness.check(at(50ms * i)), Status::ok) << "forged";
  }
}

TEST(Liveness, OneForgedPathErrorIsNotEnough) {
  Liveness liveness(5s);
  liveness.set_expecting(at(0s), true);
  liveness.on_path_error(at(0s), Status::refused, true);
  EXPECT_EQ(idle_until_verdict(liveness, at(0s)), at(5s));
}

TEST(Liveness, APortThatIsContestedIsAskedAboutSeveralTimesBeforeTheVerdict) {
  for (const bool met : {true, false}) {
    const Duration tolerated = met ? 300ms : 950ms;
    Liveness liveness(5s);
    if (met) liveness.on_met(false);
    liveness.set_expecting(at(0s), true);
    liveness.on_path_error(at(0s), Status::refused, met);
    int asked = 0;
    for (Duration time = 0ms; time < 5s; time += 10ms) {
      if (!liveness.keep_alive_due(at(time))) continue;
      liveness.on_keep_alive_sent(at(time));
      if (time < tolerated) ++asked;
      if (time >= tolerated + 100ms) {
        EXPECT_FALSE(liveness.keep_alive_due(at(time + (met ? 990ms : 240ms))))
            << "one error alone proves nothing: as often as ever again";
        break;
      }
    }
    EXPECT_GE(asked, tolerated / 75ms);
  }
}

TEST(Liveness, AnEndpointThatIsStuckIsGivenUpIfThatIsAskedFor) {
  for (const Duration stuck : {0s, 20s}) {
    Liveness liveness(5s, stuck, Liveness::Probes::of_met);
    liveness.on_met(true);
    liveness.set_expecting(at(0s), true);
    const Time end = asked_until_verdict(liveness, at(0s), at(1min), Answer::exists);
    EXPECT_EQ(liveness.check(end), stuck == 0s ? Status::ok : Status::stuck);
  }
}

/// From one moment to another, in which there is no verdict: this side is there all the time, as an engine
/// is.
void run_between(Liveness& liveness, Time now, Time until) {
  for (; now < until; now = std::min(std::max(liveness.deadline(), now + 1ms), until)) {
    ASSERT_EQ(liveness.check(now), Status::ok);
    if (liveness.keep_alive_due(now)) liveness.on_keep_alive_sent(now);
  }
}

/// Where the peer's kernel cannot be asked, only the peer itself can say that an error is forged.
TEST(LivenessErrors, APeerWhosePortIsSaidToBeClosedIsAskedAtOnce) {
  Liveness liveness(5s);
  liveness.on_met(false);
  liveness.set_expecting(at(0s), true);
  for (Time now = at(10ms); now < at(2s); now += 5ms) {
    liveness.on_path_error(now, Status::refused, true);
    ASSERT_EQ(liveness.check(now), Status::ok);
    if (!liveness.keep_alive_due(now)) continue;
    liveness.on_keep_alive_sent(now);
    liveness.on_answer(now, now, Liveness::By::responder);
  }
}

TEST(LivenessErrors, AnAnswerToWhatWasAskedBeforeAPathErrorDoesNotRefuteIt) {
  for (const Duration asked : {90ms, 150ms}) {
    Liveness liveness(5s);
    liveness.on_met(false);
    liveness.set_expecting(at(0s), true);
    for (Duration time = 100ms; time <= 500ms; time += 10ms) {
      if (time % 50ms == 0ms) liveness.on_path_error(at(time), Status::refused, true);
      if (liveness.keep_alive_due(at(time))) liveness.on_keep_alive_sent(at(time));
      if (time == 200ms) liveness.on_answer(at(time), at(asked), Liveness::By::responder);
    }
    EXPECT_EQ(liveness.check(at(500ms)), asked < 100ms ? Status::ended : Status::ok);
  }
}

/// Kernels report an outage that lasts once a second.
TEST(LivenessErrors, PathErrorsThatFollowEachOtherEndTheSession) {
  for (const auto& [error, seconds] : {std::pair{Status::refused, 1}, std::pair{Status::unreachable, 3}}) {
    Liveness liveness(100s);
    liveness.set_expecting(at(0s), true);
    for (int second = 0; second < seconds; ++second) {
      EXPECT_TRUE(liveness.on_path_error(at(1s * second), error, false)) << "sent again soon";
      EXPECT_EQ(liveness.check(at(1s * second)), Status::ok) << second;
      run_between(liveness, at(1s * second), at(1s * (second + 1)));
    }
    EXPECT_FALSE(liveness.on_path_error(at(1s * seconds), error, false));
    EXPECT_EQ(liveness.check(at(1s * seconds)), error);
  }
}

TEST(LivenessErrors, PathErrorsFarApartAreNotOneOutage) {
  Liveness liveness(100s);
  liveness.set_expecting(at(0s), true);
  for (int i = 0; i < 20; ++i)
    EXPECT_TRUE(liveness.on_path_error(at(2600ms * i), Status::refused, false)) << i;
  EXPECT_EQ(liveness.check(at(52s)), Status::ok);
}

/// Found by the simulator (siege): a process calls one that is just starting, and is stopped. What the kernel
/// has kept for it says that the port was closed, and is read a second later.
TEST(LivenessErrors, PathErrorsFromBeforeAndDuringAStopOfThisSideEndNothing) {
  Liveness liveness(5s);
  liveness.set_expecting(at(0s), true);
  liveness.on_path_error(at(10ms), Status::refused, false);
  EXPECT_EQ(liveness.check(at(20ms)), Status::ok);
  liveness.on_path_error(at(2s), Status::refused, false);
  EXPECT_EQ(liveness.check(at(2s)), Status::ok) << "it has had no time to answer";
  EXPECT_TRUE(liveness.keep_alive_due(at(2s)));
  for (Time now = at(2s); now < at(3s); now += 10ms) {
    if (now == at(2500ms)) liveness.on_path_error(now, Status::refused, false);
    if (liveness.check(now) != Status::refused) continue;
    EXPECT_GE(now, at(2900ms));
    return;
  }
  ADD_FAILURE() << "what is true for so long is believed";
}

/// What is forged says so first, and its answers are lost; then the network says so as well, for a while.
TEST(LivenessErrors, APeerThatWasAskedInVainLongAgoIsAskedAnewWhenAnOutageBegins) {
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

/// As a rank does that computes: its responder answers, its engine does not.
TEST(Liveness, OnlyAPeerOfWhichNothingAnswersIsReported) {
  using News = Liveness::News;
  for (const bool responds : {true, false}) {
    Liveness liveness(5s, 0s, Liveness::Probes::of_met);
    liveness.on_met(true);
    liveness.set_expecting(at(0s), true);
    std::size_t reported = 0;
    for (Duration time = 0s; time < 1min; time += 10ms) {
      if (liveness.probe_due(at(time))) liveness.on_probe(at(time), link::ProcessProbe::Answer::exists);
      if (liveness.keep_alive_due(at(time))) {
        liveness.on_keep_alive_sent(at(time));
        if (responds) liveness.on_answer(at(time), at(time), Liveness::By::responder);
      }
      EXPECT_EQ(liveness.check(at(time)), Status::ok);
      if (liveness.take_news() == News::none) continue;
      ++reported;
      EXPECT_EQ(time / 1s, Liveness::kWorthALine / 1s);
    }
    EXPECT_EQ(reported, responds ? 0u : 1u);
    if (responds) continue;
    liveness.on_sign_of_life(at(1min), false);
    EXPECT_LE(liveness.deadline(), at(1min)) << "that is to be reported, too";
    EXPECT_EQ(liveness.take_news(), News::over);
    EXPECT_GT(liveness.deadline(), at(1min));
  }
}

}  // namespace
}  // namespace cluster::reliability
