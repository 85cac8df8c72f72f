// Turns taken by the progress thread (os/progress_thread.h) while the application does something else.
//
// With manual progress they are rare: enough that acknowledgements and keep-alives do not wait for ever, nor
// messages that wait for others to share their frame (packing_policy.h). Where a thread of the application
// has gone to sleep and nothing has happened for kQuietRuns of them, the progress thread sleeps on the same descriptor: a process
// that waits uses no processor, and both are woken by what comes next. If that was only a deadline, and the application sleeps
// again, the progress thread does so, too.
//
// Where there are more processes than processors the runs come late, and would take the time of the applications that
// wait for a processor: one that came late by more than kLate is followed by a rest of kLateRest times the delay.
//
// With automatic progress (FI_PROGRESS_AUTO) each run chooses one of three states:
//   serving      no turn was taken by the application since the last run: a turn, and if nothing came in,
//                asleep with everything armed, so that the next frame or segment wakes the progress thread;
//   standing by  the application polls, and nothing has come over the network: asleep without asking local
//                peers to ring, since each doorbell would cost them a needless system call. If the
//                application stops polling, a peer that waits rings unasked (LocalPeers::ring_unheard); one
//                that does not wait is heard within kStandBy;
//   away         the application polls while frames come in, or sleeps and wakes by itself: a short sleep
//                without the descriptor, or each frame would wake both.
//
// Called under the engine lock, except where the comment says otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "engine/event_loop.h"
#include "os/progress_thread.h"
#include "protocol/messenger.h"
#include "transport/packing_policy.h"
#include "transport/waiter.h"

namespace cluster::engine {

class BackgroundRunner {
 public:
  static constexpr os::NextWake kAway{200us};  ///< state `away`, or another thread is inside
  static constexpr os::NextWake kInStream{transport::PackingPolicy::kStreamInterval};
  static constexpr Duration kIdle = 10ms;
  static constexpr unsigned kQuietRuns = 4;

  BackgroundRunner(EventLoop& loop, transport::Waiter& waiter, transport::PackingPolicy& packing,
                   protocol::Messenger& messenger, Clock& clock, const Counters& counters)
      : loop_(loop),
        waiter_(waiter),
        packing_(packing),
        messenger_(messenger),
        clock_(clock),
        counters_(counters) {}

  /// Registration of run() with the progress thread; null ends it, which waits for a run under way.
  void set_registration(std::shared_ptr<void> registration) { registration_ = std::move(registration); }
  void set_automatic() { automatic_.store(true, std::memory_order_relaxed); }
  /// A thread of the application is about to sleep on the engine.
  void application_sleeps() { application_sleeps_ = true; }
  /// For the progress thread, without the lock: true if the application has polled since the last call, and
  /// so there is nothing to do. A thread that uses the lock alone (base/lock.h) is not made to share
  /// it.
  bool application_polls();
  /// If so: when to ask again.
  os::NextWake next_check();
  /// How long the application has taken no turn, at least; zero: not known, as of one that sleeps here. For the progress
  /// thread.
  Duration application_away() const;
  /// Takes a turn if one is needed, and says when to come again.
  os::NextWake run();

 private:
  static constexpr Duration kSoon = 1ms;
  static constexpr Duration kLate = 1ms;  ///< from here on a delay was no chance
  static constexpr int kLateRest = 4;     ///< times the delay
  static constexpr Duration kRestMax = 40ms;
  static constexpr Duration kStandBy = 1ms;
  static constexpr std::uint32_t kTurnsOfAWake = 8;

  bool none_since() const;
  void note_turns(Time now) {
    if (loop_.turns() != turns_seen_) turn_noted_at_ = now;
  }
  os::NextWake run_manual();
  /// After that time, or a longer rest if this run came late.
  os::NextWake by_time(Duration rest);

  EventLoop& loop_;
  transport::Waiter& waiter_;
  transport::PackingPolicy& packing_;
  protocol::Messenger& messenger_;
  Clock& clock_;
  const Counters& counters_;
  std::atomic<bool> automatic_{false};
  bool application_sleeps_ = false;
  unsigned quiet_runs_ = 0;  ///< in a row, with manual progress
  bool sleeps_ = false;      ///< after them
  struct Pace {              ///< with manual progress
    Time wanted{};           ///< when the next run was asked for; Time{}: whenever it comes
    Time began{};            ///< the run under way...
    Duration late{};         ///< ...so much later than it was asked for
  } pace_;
  std::uint32_t turns_seen_ = 0;   ///< of the loop, at the end of the last run
  Time turn_noted_at_{};           ///< the last run that found one of the application; Time{}: none has
  std::uint64_t frames_seen_ = 0;  ///< received until then
  std::shared_ptr<void> registration_;
};

}  // namespace cluster::engine
