// Takes turns of the engine on the progress thread (os/progress_thread.h) while the application does
// something else.
//
// With manual progress these turns are rare. They only make sure that acknowledgements, keep-alives, and
// messages that wait to share a frame (packing_policy.h) leave eventually. A run is one call of run(). If a
// thread of the application sleeps and nothing has happened for kQuietRuns runs, the progress thread sleeps
// on the same descriptor as that thread. So a waiting process uses no processor time, and the next event
// wakes both threads. If the application's thread goes back to sleep within kTurnsOfAWake turns, the progress
// thread does the same.
//
// If there are more processes than processors, the runs begin late, and they take time from applications that
// wait for a processor. So after a run that began late by kLate or more, the thread rests for kLateRest times
// the delay, but at most kRestMax.
//
// With automatic progress (FI_PROGRESS_AUTO), each run chooses one of three states:
//   serving      The application has taken no turn since the last run, so the progress thread takes one. If
//                nothing has arrived, the thread sleeps with all sources armed, and the next frame or segment
//                wakes it.
//   standing by  The application polls, and no frame has arrived. The progress thread sleeps without asking
//                local peers to ring the doorbell, because to ring it would cost them useless system calls.
//                If the application stops polling, a peer that waits for an answer rings without being asked
//                (LocalPeers::ring_unheard). Any other peer is served within kStandBy.
//   away         The application polls, and frames arrive or one of its threads has ever slept on the engine.
//                The progress thread sleeps for a short time without the descriptor. With the descriptor,
//                each frame would wake both threads.
//
// Call all methods under the engine lock, unless a comment says otherwise.
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
  /// The time until the next run in the state `away`, or if another thread holds the engine lock.
  static constexpr os::NextWake kAway{200us};
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

  /// Stores the handle that keeps run() registered with the progress thread. Passing null unregisters run()
  /// and waits until the current run ends.
  void set_registration(std::shared_ptr<void> registration) { registration_ = std::move(registration); }
  void set_automatic() { automatic_.store(true, std::memory_order_relaxed); }
  /// Called when a thread of the application is about to sleep on the engine.
  void application_sleeps() { application_sleeps_ = true; }
  /// Returns true if the application has polled since the last call, so that the progress thread has nothing
  /// to do. Returns false with automatic progress, or if a stream begins or ends (packing_policy.h). The
  /// progress thread calls this without the engine lock, so that a polling application remains the only user
  /// of that lock (base/lock.h).
  bool application_polls();
  /// Returns when to call application_polls() again after it has returned true.
  os::NextWake next_check();
  /// Returns a lower bound on the time since the application last took a turn. Returns zero if that is
  /// unknown, for example because the application has ever slept on the engine. Only the progress thread
  /// calls this.
  Duration application_away() const;
  /// Takes a turn if one is needed, and returns when the progress thread must call again.
  os::NextWake run();

 private:
  static constexpr Duration kSoon = 1ms;
  static constexpr Duration kLate = 1ms;  ///< a delay of at least this counts as late
  static constexpr int kLateRest = 4;     ///< after a late run, the thread rests this many times the delay
  static constexpr Duration kRestMax = 40ms;
  static constexpr Duration kStandBy = 1ms;
  static constexpr std::uint32_t kTurnsOfAWake = 8;

  bool none_since() const;
  void note_turns(Time now) {
    if (loop_.turns() != turns_seen_) turn_noted_at_ = now;
  }
  os::NextWake run_manual();
  /// Returns when the progress thread must call again: after `rest`, or later if this run was late.
  os::NextWake by_time(Duration rest);

  EventLoop& loop_;
  transport::Waiter& waiter_;
  transport::PackingPolicy& packing_;
  protocol::Messenger& messenger_;
  Clock& clock_;
  const Counters& counters_;
  std::atomic<bool> automatic_{false};
  /// Stays set, because one thread of the application may sleep while another polls.
  bool application_sleeps_ = false;
  unsigned quiet_runs_ = 0;  ///< with manual progress: the number of runs in a row without an event
  bool sleeps_ = false;      ///< the last run let the progress thread sleep until the descriptor is readable
  // The next three members are used only with manual progress.
  Time wanted_{};                 ///< the time at which the next run is due; Time{} if none is set
  Time began_{};                  ///< the time at which the current run began
  Duration late_{};               ///< how late the current run began
  std::uint32_t turns_seen_ = 0;  ///< loop_.turns() at the end of the last run
  /// The time of the last run that noticed a turn of the application; Time{} if none has.
  Time turn_noted_at_{};
  std::uint64_t frames_seen_ = 0;  ///< the counter of received frames at the end of the last run
  std::shared_ptr<void> registration_;
};

}  // namespace cluster::engine
