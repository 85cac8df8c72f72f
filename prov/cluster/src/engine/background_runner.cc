#include "engine/background_runner.h"

#include <algorithm>

namespace cluster::engine {

/// Returns true if there were no turns since the last run. Also returns true if one thread woke, took a few
/// turns and went back to sleep. A thread that wakes for each message takes more turns.
bool BackgroundRunner::none_since() const {
  const std::uint32_t turns = loop_.turns();
  const std::uint32_t taken = turns - turns_seen_;
  return taken == 0 || (taken <= kTurnsOfAWake && turns == waiter_.armed_at());
}

bool BackgroundRunner::application_polls() {
  if (automatic_.load(std::memory_order_relaxed)) return false;
  began_ = clock_.now();
  late_ = wanted_ == Time{} ? Duration{} : began_ - wanted_;
  wanted_ = Time{};
  note_turns(began_);
  const std::uint32_t turns = loop_.turns();
  if (packing_.review_due() || none_since()) return false;
  turns_seen_ = turns;
  quiet_runs_ = 0;
  sleeps_ = false;
  return true;
}

os::NextWake BackgroundRunner::run() {
  if (!automatic_) return run_manual();
  const bool polled = loop_.turns() != turns_seen_;
  if (polled) turn_noted_at_ = clock_.now();
  const bool busy = counters_.frames_received != frames_seen_ || application_sleeps_;
  os::NextWake next = kAway;
  if (!polled) {
    // arm() fails if something has arrived, if sleeping is impossible, or while a target is taking posted
    // writes. In the last case this thread pauses between turns, because the target's process may be stopped.
    const bool armed = loop_.arm();
    const bool at_once = waiter_.can_sleep() && !messenger_.rma().pending();
    next = armed ? os::NextWake{os::NextWake::kUntilReadable, loop_.descriptor()}
                 : os::NextWake{at_once ? 0ms : kSoon};
  } else if (!busy && loop_.descriptor() >= 0) {
    // No other thread sleeps on the engine. So this run handles the descriptor's events without arming the
    // rings again, and leaves deadlines to the application.
    loop_.handle_events();
    waiter_.cancel_alarm();
    next = {kStandBy, loop_.descriptor()};
  }
  packing_.set_in_stream(next.after <= kStandBy);
  turns_seen_ = loop_.turns();
  frames_seen_ = counters_.frames_received;
  return next;
}

/// Performs one run with manual progress: takes a turn if the application may be too busy to take one.
os::NextWake BackgroundRunner::run_manual() {
  packing_.apply_review();
  const bool slept = std::exchange(sleeps_, false);
  if (!packing_.in_stream() && none_since() && waiter_.quiet()) {
    turns_seen_ = loop_.turns();
    if (quiet_runs_ < kQuietRuns && ++quiet_runs_ < kQuietRuns) return by_time(kIdle);
    sleeps_ = true;
    return {os::NextWake::kUntilReadable, loop_.descriptor()};
  }
  // The event that woke this thread also wakes the application's thread. So this thread first gives the
  // application's thread time to handle the event and go back to sleep.
  if (slept && !packing_.in_stream()) return by_time(kIdle);
  if (loop_.run_once()) quiet_runs_ = 0;
  turns_seen_ = loop_.turns();
  if (packing_.in_stream()) return kInStream;
  if (loop_.wants_turns()) return by_time(kSoon);
  return by_time(std::clamp(std::max(loop_.next_deadline(), began_) - began_, kSoon, kIdle));
}

Duration BackgroundRunner::application_away() const {
  const bool known = turn_noted_at_ != Time{} && !application_sleeps_ && loop_.turns() == turns_seen_;
  return known ? clock_.now() - turn_noted_at_ : Duration{};
}

os::NextWake BackgroundRunner::next_check() { return packing_.in_stream() ? kInStream : by_time(kIdle); }

os::NextWake BackgroundRunner::by_time(Duration rest) {
  if (late_ >= kLate) rest = std::max(rest, std::min(kLateRest * late_, kRestMax));
  wanted_ = began_ + rest;
  return {rest};
}

}  // namespace cluster::engine
