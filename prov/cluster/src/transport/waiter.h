// How an engine sleeps. arm() of the event loop makes sure that the waiter's descriptor becomes readable as
// soon as a turn has something to do. The descriptor stands for everything that can happen to an engine:
// frames and path errors (the link's sockets), segments and free slots in rings (the doorbell), connections (a local socket),
// deaths (handles of processes), deadlines (an alarm).
//
// Several threads may sleep on one engine: in calls that wait, in an application's select, the progress
// thread. None of them misses an event, by this invariant: as long as a thread sleeps, every source either is
// armed or keeps the descriptor readable. What is readable stays so until arm() handles it, and arm() arms
// again whatever it has handled. What other threads change meanwhile (a new ring, an earlier deadline, a
// message to the endpoint itself) moves the alarm (EventLoop::wake_sleepers). So nothing has to be disarmed
// on waking; at worst an engine that is awake gets one spurious doorbell per ring.
//
// The set of descriptors is opened by the first thread that wants to sleep: an engine that is only polled
// needs none.
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
  /// The descriptor is readable. `trouble`: it reports an error, or its other end is gone; perhaps beside input.
  virtual void on_ready(bool trouble) = 0;

 protected:
  ~WakeSource() = default;
};

class Waiter {
 public:
  /// Opens the set and adds all that is watched. False if descriptors or timers are not available, or something cannot be
  /// waited for.
  bool open();
  /// -1 unless it is open.
  int descriptor() const { return wait_set_ != nullptr ? wait_set_->descriptor() : -1; }
  /// From now on the source hears when the descriptor is readable; -1: there is none.
  void watch(int descriptor, WakeSource& source);
  void unwatch(int descriptor);
  /// Some source has no descriptor that announces what arrives: no thread can sleep here.
  void forbid() { forbidden_ = true; }

  /// Tells the sources of all that is ready now; an alarm that went off is only cancelled.
  void dispatch();
  /// Begins to arm: from here on every new source must be armed by another attempt.
  void begin_arming() { changed_ = false; }
  bool complete() const { return !changed_ && !incomplete_; }
  /// Everything is armed, and there have been so many turns.
  void end_arming(std::uint32_t turns) { armed_at_.store(turns, std::memory_order_relaxed); }
  /// Of the last time; also read outside the engine lock.
  std::uint32_t armed_at() const { return armed_at_.load(std::memory_order_relaxed); }
  /// False: a thread that sleeps here might miss something.
  bool can_sleep() const { return wait_set_ != nullptr && !incomplete_; }

  /// A thread has armed everything, and nothing has happened since (a system call).
  bool quiet() const;

  /// False: the alarm has gone off or is about to, or no thread can be asleep.
  bool may_sleep() const { return alarm_at_ != Time::min(); }
  void set_alarm(Time when);
  void set_alarm_if_earlier(Time when) {
    if (when < alarm_at_) set_alarm(when);
  }
  /// The alarm goes off at `when` at the latest. An earlier alarm stays: to move it with every message that moves a deadline
  /// would cost more than to wake up once too often.
  void set_alarm_by(Time when, Time now) {
    if (alarm_at_ <= now || alarm_at_ > when) set_alarm(when);
  }
  /// From now on another thread looks after deadlines.
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
  bool incomplete_ = false;  ///< a descriptor could not be added: never sleep again
};

}  // namespace cluster::transport
