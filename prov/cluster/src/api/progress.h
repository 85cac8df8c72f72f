// The engines that write to a queue or counter. A read makes progress on all of them, because libfabric
// demands progress on the whole endpoint from a read of any bound object. A wait sleeps on all of them.
//
// The lock keeps an engine alive while it is polled. A second reader does not wait for the first, which does
// the same work. Only closing an endpoint and arming wait for the lock.
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

  /// Adds an engine, perhaps more than once; the caller must remove it as often.
  void add(engine::Engine& engine);
  void remove(engine::Engine& engine);

  /// Polls all engines. Arrivals of the fast lane go into `read` if it accepts them.
  template <typename Read = protocol::NoDirectRead>
  void poll(Read&& read = Read()) {
    if (!lock_.try_lock()) [[unlikely]]
      return;
    const std::lock_guard guard(lock_, std::adopt_lock);
    for (const Member& member : members_) member.engine->try_poll(read);
  }

  Platform& platform() { return platform_; }
  fi_wait_obj wait_object() const { return wait_object_; }
  /// Opens the sleeper on first use. Returns null if waiting threads poll instead of sleeping, or no
  /// descriptor is left.
  engine::Sleeper* sleeper();
  /// Returns null if the sleeper has not been opened yet.
  engine::Sleeper* opened_sleeper() const { return sleeper_.load(); }
  /// Polls every engine. Returns true if nothing came in, and the sleeper wakes when something does.
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

/// Progress of the counters that are bound to memory regions. A region belongs to no endpoint: peers access
/// it through every endpoint of its domain that serves remote access. So a read of such a counter makes
/// progress on the engines of all these endpoints, even those enabled later.
class MrProgress {
 public:
  /// Adds an engine that serves the regions of the domain.
  void add_engine(engine::Engine& engine);
  void remove_engine(engine::Engine& engine);

  /// Adds a counter that is bound to a region, perhaps more than once; the caller must remove it as often.
  void add_counter(Progress& counter_progress);
  void remove_counter(Progress& counter_progress);

 private:
  std::mutex mutex_;
  std::vector<engine::Engine*> engines_;
  std::vector<Progress*> counters_;
};

}  // namespace cluster::api
