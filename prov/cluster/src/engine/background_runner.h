// The turns that the progress thread (os/progress_thread.h) takes while the application does something else.
//
// With manual progress these turns are rare: just enough that acknowledgements, keep-alives, and messages
// that wait to share a frame (packing_policy.h) do not wait forever. If a thread of the application sleeps
// and nothing has happened for kQuietRuns runs, the progress thread sleeps on the same descriptor. So a
// waiting process uses no processor, and the next event wakes both threads. If the event was only a deadline
// and the application goes back to sleep, so does the progress thread.
//
// If there are more processes than processors, runs come late and take time from applications that wait for a
// processor. So after a run that is late by more than kLate, the thread rests for kLateRest times the delay.
//
// With automatic progress (FI_PROGRESS_AUTO) each run chooses one of three states:
//   serving      The application has taken no turn since the last run, so the progress thread takes one. If
//                nothing has arrived, it sleeps with everything armed, and the next frame or segment wakes
//                it.
//   standing by  The application polls, and nothing has come over the network. The progress thread sleeps
//                without asking local peers to ring, since each doorbell would cost them a useless system
//                call. If the application stops polling, a peer that waits rings unasked
//                (LocalPeers::ring_unheard). A peer that does not wait is served within kStandBy.
//   away         The application polls while frames arrive, or sleeps and wakes by itself. The progress
//                thread sleeps for a short time without the descriptor, because each frame would wake both
//                threads.
//
// Call it under the engine lock, unless a comment says otherwise.
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

  /// Stores the registration of run() with the progress thread. Null ends it and waits for the current run.
  void set_registration(std::shared_ptr<void> registration) { registration_ = std::move(registration); }
  void set_automatic() { automatic_.store(true, std::memory_order_relaxed); }
  /// A thread of the application is about to sleep on the engine.
  void application_sleeps() { application_sleeps_ = true; }
  /// Returns true if the application has polled since the last call, so that there is nothing to do. The
  /// progress thread calls this without the lock. So a thread that uses the lock alone (base/lock.h) need not
  /// share it.
  bool application_polls();
  /// When to ask again after application_polls() was true.
  os::NextWake next_check();
  /// Returns how long the application has taken no turn, at least. Zero: unknown, for example because it
  /// sleeps here. For the progress thread.
  Duration application_away() const;
  /// Takes a turn if one is needed, and returns when to come again.
  os::NextWake run();

 private:
  static constexpr Duration kSoon = 1ms;
  static constexpr Duration kLate = 1ms;  ///< a longer delay is not accidental
  static constexpr int kLateRest = 4;     ///< rest: this many times the delay
  static constexpr Duration kRestMax = 40ms;
  static constexpr Duration kStandBy = 1ms;
  static constexpr std::uint32_t kTurnsOfAWake = 8;

  bool none_since() const;
  void note_turns(Time now) {
    if (loop_.turns() != turns_seen_) turn_noted_at_ = now;
  }
  os::NextWake run_manual();
  /// Returns when to come again: after `rest`, or later if this run was late.
  os::NextWake by_time(Duration rest);

  EventLoop& loop_;
  transport::Waiter& waiter_;
  transport::PackingPolicy& packing_;
  protocol::Messenger& messenger_;
  Clock& clock_;
  const Counters& counters_;
  std::atomic<bool> automatic_{false};
  bool application_sleeps_ = false;
  unsigned quiet_runs_ = 0;  ///< quiet runs in a row, with manual progress
  bool sleeps_ = false;      ///< the thread sleeps after them
  // With manual progress:
  Time wanted_{};                  ///< the time set for the next run; Time{}: none
  Time began_{};                   ///< the start of the current run...
  Duration late_{};                ///< ...and its delay
  std::uint32_t turns_seen_ = 0;   ///< of the loop, at the end of the last run
  Time turn_noted_at_{};           ///< the last run that found a turn of the application; Time{}: none has
  std::uint64_t frames_seen_ = 0;  ///< frames received until the end of the last run
  std::shared_ptr<void> registration_;
};

}  // namespace cluster::engine
