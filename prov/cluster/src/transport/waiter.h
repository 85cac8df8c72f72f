// How an engine sleeps. arm() of the event loop makes sure that the waiter's descriptor becomes readable as
// soon as a turn has work. The descriptor stands for everything that can happen to an engine: frames and path
// errors (the link's sockets), segments and free slots in rings (the doorbell), connections (a local socket),
// deaths (handles of processes), deadlines (an alarm).
//
// Several threads may sleep on one engine: in calls that wait, in an application's select, and in the
// progress thread. None of them misses an event, by this invariant: while a thread sleeps, every source is
// armed or keeps the descriptor readable. A readable source stays readable until arm() handles it, and arm()
// arms again whatever it has handled. Changes by other threads (a new ring, an earlier deadline, a message to
// the endpoint itself) move the alarm (EventLoop::wake_sleepers). So waking disarms nothing. At worst an
// engine that is awake gets one spurious doorbell per ring.
//
// The first thread that wants to sleep opens the set of descriptors. An engine that is only polled needs
// none.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/units.h"
#include "os/wait_set.h"

namespace cluster::transport {

/// What a descriptor stands for.
class WakeSource {
 public:
  /// The descriptor is readable. `trouble`: it reports an error, or its other end is gone; perhaps beside
  /// input.
  virtual void on_ready(bool trouble) = 0;

 protected:
  ~WakeSource() = default;
};

class Waiter {
 public:
  /// Opens the set and adds everything that is watched. Returns false if descriptors or timers are not
  /// available, or if a source cannot be waited for.
  bool open();
  /// Returns the descriptor, or -1 unless the set is open.
  int descriptor() const { return wait_set_ != nullptr ? wait_set_->descriptor() : -1; }
  /// Tells the source from now on when the descriptor is readable. `descriptor` -1: there is none.
  void watch(int descriptor, WakeSource& source);
  void unwatch(int descriptor);
  /// A source has no descriptor that announces arrivals, so no thread can sleep here.
  void forbid() { forbidden_ = true; }

  /// Notifies the sources of everything that is ready now. An alarm that went off is only cancelled.
  void dispatch();
  /// Begins to arm. A source that is added from here on needs another attempt.
  void begin_arming() { changed_ = false; }
  bool complete() const { return !changed_ && !incomplete_; }
  /// Everything is armed. `turns`: the number of turns so far.
  void end_arming(std::uint32_t turns) { armed_at_.store(turns, std::memory_order_relaxed); }
  /// The turns at the last end_arming(). Also read outside the engine lock.
  std::uint32_t armed_at() const { return armed_at_.load(std::memory_order_relaxed); }
  /// Returns false if a thread that sleeps here might miss an event.
  bool can_sleep() const { return wait_set_ != nullptr && !incomplete_; }

  /// True if a thread has armed everything, and nothing has happened since. Costs a system call.
  bool quiet() const;

  /// Returns false if the alarm has gone off or is about to, or if no thread can be asleep.
  bool may_sleep() const { return alarm_at_ != Time::min(); }
  void set_alarm(Time when);
  void set_alarm_if_earlier(Time when) {
    if (when < alarm_at_) set_alarm(when);
  }
  /// Makes the alarm go off at `when` at the latest. An earlier alarm stays: moving it with every message
  /// that moves a deadline would cost more than one useless wake-up.
  void set_alarm_by(Time when, Time now) {
    if (alarm_at_ <= now || alarm_at_ > when) set_alarm(when);
  }
  /// Another thread handles deadlines from now on.
  void cancel_alarm();

 private:
  static constexpr std::size_t kEventsMax = 32;

  struct Watched {
    int descriptor;
    WakeSource* source;
  };

  std::vector<Watched> watched_;
  std::unique_ptr<os::WaitSet> wait_set_;
  std::unique_ptr<os::Alarm> alarm_;
  Time alarm_at_ = Time::min();
  std::atomic<std::uint32_t> armed_at_{0};
  bool forbidden_ = false;
  bool changed_ = false;     ///< a source was added since begin_arming()
  bool incomplete_ = false;  ///< a descriptor could not be added, so no thread may sleep again
};

}  // namespace cluster::transport
