// Turns taken by the progress thread (os/progress_thread.h) while the application does something else.
//
// With manual progress these turns are rare: just enough that acknowledgements and keep-alives do not wait for ever,
// nor messages that wait for others to share their frame (packing_policy.h). If a thread of the application sleeps and
// nothing has happened for kQuietRuns runs, the progress thread sleeps on the same descriptor. So a process that waits
// uses no processor, and what comes next wakes both threads. If this was only a deadline, and the application goes back
// to sleep, the progress thread does so, too.
//
// If there are more processes than processors, runs come late and take time from applications that wait for a processor.
// So after a run that is late by more than kLate, the thread rests for kLateRest times the delay.
//
// With automatic progress (FI_PROGRESS_AUTO) each run chooses one of three states:
//   serving      The application has taken no turn since the last run. The progress thread takes one. If nothing came
//                in, it sleeps with everything armed, so that the next frame or segment wakes it.
//   standing by  The application polls, and nothing has come over the network. The progress thread sleeps without asking
//                local peers to ring, since each doorbell would cost them a needless system call. If the application
//                stops polling, a peer that waits rings unasked (LocalPeers::ring_unheard); a peer that does not wait
//                is heard within kStandBy.
//   away         The application polls while frames come in, or sleeps and wakes by itself. The progress thread sleeps
//                for a short time without the descriptor, because each frame would wake both threads.
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

  /// Registration of run() with the progress thread; null ends it and waits for a run under way.
  void set_registration(std::shared_ptr<void> registration) { registration_ = std::move(registration); }
  void set_automatic() { automatic_.store(true, std::memory_order_relaxed); }
  /// A thread of the application is about to sleep on the engine.
  void application_sleeps() { application_sleeps_ = true; }
  /// True if the application has polled since the last call, so that there is nothing to do. The progress thread calls
  /// this without the lock, so that a thread that uses the lock alone (base/lock.h) need not share it.
  bool application_polls();
  /// When to ask again after application_polls() was true.
  os::NextWake next_check();
  /// The application has taken no turn for at least this long. Zero: unknown, for example because it sleeps here. For
  /// the progress thread.
  Duration application_away() const;
  /// Takes a turn if one is needed, and says when to come again.
  os::NextWake run();

 private:
  static constexpr Duration kSoon = 1ms;
  static constexpr Duration kLate = 1ms;  ///< a longer delay is no accident
  static constexpr int kLateRest = 4;     ///< rest: this many times the delay
  static constexpr Duration kRestMax = 40ms;
  static constexpr Duration kStandBy = 1ms;
  static constexpr std::uint32_t kTurnsOfAWake = 8;

  bool none_since() const;
  void note_turns(Time now) {
    if (loop_.turns() != turns_seen_) turn_noted_at_ = now;
  }
  os::NextWake run_manual();
  /// Come again after `rest`, or later if this run was late.
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
  // With manual progress:
  Time wanted_{};                  ///< when the next run was asked for; Time{}: whenever it comes
  Time began_{};                   ///< the run under way...
  Duration late_{};                ///< ...so much later than it was asked for
  std::uint32_t turns_seen_ = 0;   ///< of the loop, at the end of the last run
  Time turn_noted_at_{};           ///< the last run that found one of the application; Time{}: none has
  std::uint64_t frames_seen_ = 0;  ///< received until then
  std::shared_ptr<void> registration_;
};

}  // namespace cluster::engine
