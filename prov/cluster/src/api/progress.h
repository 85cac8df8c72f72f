// The engines that write to one queue or counter. A read of the counter, or of the queue if it is empty,
// makes progress on all these engines. libfabric demands that a read of any bound object makes progress on
// the whole endpoint. A waiting thread sleeps until one of these engines has work.
//
// The lock makes sure that an engine is not destroyed while a reader polls it. If a reader finds the lock
// taken, it does not wait, because usually another reader holds the lock and does the same work. Only calls
// that prepare a sleep, and calls that add or remove an engine, wait for the lock.
#pragma once

#include <rdma/fi_eq.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "api/platform.h"
#include "base/lock.h"
#include "engine/engine.h"
#include "engine/sleeper.h"

namespace cluster::api {

class Progress {
 public:
  Progress(Platform& platform, fi_wait_obj wait_object)
      : platform_(platform), wait_object_(wait_object), lock_(platform.fence()) {}

  /// Adds an engine. If an engine is added several times, it must be removed as often.
  void add(engine::Engine& engine);
  void remove(engine::Engine& engine);

  /// Polls all engines. The completions of messages that arrive by the fast lane or the frame lane are
  /// written to `read` if `read` accepts them.
  template <typename Read = protocol::NoDirectRead>
  void poll(Read&& read = Read()) {
    if (!lock_.try_lock()) [[unlikely]]
      return;
    const std::lock_guard guard(lock_, std::adopt_lock);
    for (const Member& member : members_) member.engine->try_poll(read);
  }

  Platform& platform() { return platform_; }
  fi_wait_obj wait_object() const { return wait_object_; }
  /// Returns the sleeper, and opens it on first use. Returns null if no descriptor is free, or if the wait
  /// object is FI_WAIT_YIELD. In these cases threads poll instead of sleeping.
  engine::Sleeper* sleeper();
  /// Returns the sleeper, or null if it is not open yet.
  engine::Sleeper* opened_sleeper() const { return sleeper_.load(); }
  /// Runs one turn of each engine, and arms the engine. Returns false at the first engine at which something
  /// has arrived, or which cannot be armed. Otherwise returns true, and the sleeper wakes as soon as
  /// something arrives.
  bool arm();
  /// Wakes a thread that sleeps on the sleeper.
  void wake() {
    if (engine::Sleeper* sleeper = sleeper_.load()) sleeper->wake();
  }

 private:
  struct Member {
    engine::Engine* engine;
    int uses;
  };

  Platform& platform_;
  const fi_wait_obj wait_object_;
  BiasedLock lock_;
  std::vector<Member> members_;
  std::unique_ptr<engine::Sleeper> owned_;
  std::atomic<engine::Sleeper*> sleeper_{nullptr};
};

/// Connects the engines of a domain with the counters that are bound to memory regions. A region belongs to
/// no single endpoint. Peers access it through every endpoint of the domain that has remote access. So a read
/// of such a counter must make progress on the engines of all these endpoints, including endpoints that are
/// enabled later. A second object does the same for counters of deferred work (Domain::work_progress()).
class MrProgress {
 public:
  /// Adds an engine. From now on each read of an added counter makes progress on this engine.
  void add_engine(engine::Engine& engine);
  void remove_engine(engine::Engine& engine);

  /// Adds a counter. If a counter is added several times, it must be removed as often.
  void add_counter(Progress& counter_progress);
  void remove_counter(Progress& counter_progress);

 private:
  std::mutex mutex_;
  std::vector<engine::Engine*> engines_;
  std::vector<Progress*> counters_;
};

}  // namespace cluster::api
