// The engines that a queue or a counter hears of. Whoever reads the queue makes all of them go on:
// libfabric promises that reading anything that is bound to an endpoint moves the whole endpoint. Whoever
// waits for the queue sleeps on all of them.
//
// The lock keeps an engine alive while somebody polls it. A second reader does not wait for the
// first, which is doing the same work; only closing an endpoint waits, and whoever wants to sleep.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "api/platform.h"
#include "base/biased_lock.h"
#include "engine/engine.h"
#include "engine/sleeper.h"

namespace cluster::api {

class Progress {
 public:
  explicit Progress(Platform& platform) : platform_(platform), lock_(platform.fence()) {}

  /// An engine may be added more than once; it takes as many removals.
  void add(engine::Engine& engine);
  void remove(engine::Engine& engine);

  void poll() {
    const std::unique_lock guard(lock_, std::try_to_lock);
    if (!guard.owns_lock()) return;
    for (const Member& member : members_) member.engine->poll(false);
  }

  /// Made on first use; null if it cannot be had.
  engine::Sleeper* sleeper();
  /// A turn of every engine; true if nothing came in and the sleeper is sure to wake when something
  /// does.
  bool arm();
  /// Wakes whoever sleeps.
  void wake() {
    if (engine::Sleeper* sleeper = sleeper_.load()) sleeper->wake();
  }

 private:
  struct Member {
    engine::Engine* engine;
    int uses;
  };

  Platform& platform_;
  BiasedLock lock_;
  std::vector<Member> members_;
  std::unique_ptr<engine::Sleeper> owned_;
  std::atomic<engine::Sleeper*> sleeper_{nullptr};
};

}  // namespace cluster::api
