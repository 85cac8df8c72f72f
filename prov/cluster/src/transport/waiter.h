// Lets threads sleep until an engine has work. After EventLoop::arm(), the waiter's descriptor becomes
// readable as soon as a turn has work. The descriptor combines several sources: the link's sockets (frames
// and path errors), the doorbell (segments and free slots in rings), a local socket (connections), process
// handles (deaths), an RDMA device (completions), and an alarm (deadlines).
//
// Several threads may sleep on one engine: in calls that wait, in an application's select, and in the
// progress thread. None of them misses an event, because of this invariant: while a thread sleeps, every
// source is either armed or keeps the descriptor readable. A readable source stays readable until arm()
// handles it, and arm() then arms it again. A thread may make a change that needs a turn: a new ring, an
// earlier deadline, a message to the endpoint itself. That thread then sets the alarm to an earlier time
// (EventLoop::wake_sleepers). A thread that wakes disarms nothing. So an engine that is awake may get one
// useless doorbell per ring.
//
// The first thread that wants to sleep opens the set of descriptors. An engine that is only polled opens no
// descriptor for sleeping.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/units.h"
#include "os/wait_set.h"

namespace cluster::transport {

/// The object that owns a watched descriptor.
class WakeSource {
 public:
  /// Called when the descriptor is readable. `trouble`: the descriptor reports an error, or its other end is
  /// closed. There may be input as well.
  virtual void on_ready(bool trouble) = 0;

 protected:
  ~WakeSource() = default;
};

class Waiter {
 public:
  /// Opens the set and adds all watched descriptors. Returns false if no descriptor or timer is available, or
  /// if forbid() was called.
  bool open();
  /// Returns the descriptor of the set, or -1 if the set is not open.
  int descriptor() const { return wait_set_ != nullptr ? wait_set_->descriptor() : -1; }
  /// Makes dispatch() call source.on_ready() whenever the descriptor is readable, until unwatch().
  /// `descriptor`: -1 if the source has none.
  void watch(int descriptor, WakeSource& source);
  /// Allocates memory for one more descriptor, so that the next watch() needs none.
  void reserve() { watched_.reserve(watched_.size() + 1); }
  void unwatch(int descriptor);
  /// Forbids sleeping. Called for a source that has no descriptor to announce its arrivals.
  void forbid() { forbidden_ = true; }

  /// Calls on_ready() of every source whose descriptor is readable now. If the alarm has gone off, it stays
  /// readable until it is set again. So a thread that has woken sets the alarm once before it sleeps again.
  void dispatch();
  /// Called when arming begins. If a source is added after this call, complete() returns false, and the
  /// caller must arm again.
  void begin_arming() { changed_ = false; }
  bool complete() const { return !changed_ && !incomplete_; }
  /// Called when everything is armed. `turns`: the number of turns so far.
  void end_arming(std::uint32_t turns) { armed_at_.store(turns, std::memory_order_relaxed); }
  /// Returns `turns` of the last end_arming(). May be called without the engine lock.
  std::uint32_t armed_at() const { return armed_at_.load(std::memory_order_relaxed); }
  /// Returns false if a thread must not sleep on the descriptor, because it might miss an event.
  bool can_sleep() const { return wait_set_ != nullptr && !incomplete_; }

  /// Returns true if everything is armed and no event has happened since. Makes a system call.
  bool quiet() const;

  /// Returns true if a thread may be asleep on the descriptor. Returns false if the alarm is already set to
  /// go off at once, or if nothing was armed since cancel_alarm().
  bool may_sleep() const { return alarm_at_ != Time::min(); }
  void set_alarm(Time when);
  void set_alarm_if_earlier(Time when) {
    if (when < alarm_at_) set_alarm(when);
  }
  /// Makes the alarm go off no later than `when`. If the alarm is already set to a time between `now` and
  /// `when`, the function keeps that time. Most messages move a deadline, and setting the alarm each time
  /// would cost more than one useless wake-up.
  void set_alarm_by(Time when, Time now) {
    if (alarm_at_ <= now || alarm_at_ > when) set_alarm(when);
  }
  /// Cancels the alarm. Called when another thread begins to handle the deadlines.
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
  bool changed_ = false;     ///< a source was added after begin_arming()
  bool incomplete_ = false;  ///< a descriptor could not be added, so threads must no longer sleep
};

}  // namespace cluster::transport
