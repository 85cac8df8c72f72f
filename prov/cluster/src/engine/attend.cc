// Turns taken while the application does something else, by the library's own thread (os/progress_thread.h).
//
// With manual progress they are seldom: enough that acknowledgements and questions do not wait for ever, nor
// messages that wait for others to share their frame (packing.h). With automatic progress (FI_PROGRESS_AUTO)
// the progress thread has three states, chosen anew at each visit:
//   serving      nobody has polled since the last visit: a turn, and if nothing came in, asleep with
//                everything armed, so that the next frame or segment calls it at once;
//   standing by  the application polls, and nothing has come over the network: asleep without asking local
//                peers to knock, since each knock would cost them a system call for nothing. If the
//                application stops polling, a peer that waits in vain knocks unasked
//                (knock_where_unheard); one that does not wait is heard within kStandBy;
//   away         the application polls while frames come in, or sleeps and wakes by itself: a short nap,
//                deaf, or each frame would wake both.
#include "engine/core.h"

namespace cluster::engine {
namespace {

constexpr Duration kSoon = 1ms;
constexpr Duration kStandBy = 1ms;

}  // namespace

bool Core::looked_after() {
  if (by_itself_.load(std::memory_order_relaxed) || packing_.due()) return false;
  const std::uint32_t turns = turns_.load(std::memory_order_relaxed);
  if (turns == turns_attended_) return false;
  turns_attended_ = turns;
  return true;
}

os::NextWake Core::run_in_background() {
  if (!by_itself_) return attend_seldom();
  const bool polled = turns_ != turns_attended_;
  const bool busy = parts_.environment.counters.frames_received != frames_attended_ || others_sleep_;
  os::NextWake rest = kAfterOthers;
  if (!polled) {
    // If it cannot be armed, something has come in, or one cannot sleep here.
    const bool armed = arm();
    const bool can_sleep = watch_ != nullptr && !unwatched_;
    rest = armed ? os::NextWake{os::NextWake::kUntilReadable, descriptor()}
                 : os::NextWake{can_sleep ? 0ms : kSoon};
  } else if (!busy && descriptor() >= 0) {
    stand_by();
    rest = {kStandBy, descriptor()};
  }
  packing_.attended(rest.after <= kStandBy);
  turns_attended_ = turns_;
  frames_attended_ = parts_.environment.counters.frames_received;
  return rest;
}

/// The application may have turned to something else: the turn is taken in its place.
os::NextWake Core::attend_seldom() {
  packing_.settle();
  poll();
  turns_attended_ = turns_;
  if (packing_.attended()) return kInStream;
  return timers_.next() != kNever || messenger_.busy() ? os::NextWake{kSoon} : kAtLeisure;
}

/// Nobody else sleeps here, so knocks may be taken out without asking for more, and deadlines are the
/// application's.
void Core::stand_by() {
  heed_events();
  alarm_clock_->set(kNever);
  alarm_ = Time::min();
}

/// A peer whose application has stopped polling may not have asked to be told. Who spins here while that
/// peer has something of ours to take in tells it, once.
void Core::knock_where_unheard() {
  for (Peer* peer : locals_) {
    if (peer->outbox != nullptr && peer->channel.waits()) peer->outbox->ring_doorbell_if_stalled();
  }
}

}  // namespace cluster::engine
