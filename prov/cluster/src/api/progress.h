// The engines that a queue or a counter hears of. Whoever reads the queue makes all of them go on:
// libfabric promises that reading anything that is bound to an endpoint moves the whole endpoint.
//
// The lock keeps an engine alive while somebody polls it. A second reader does not wait for the
// first, which is doing the same work; only closing an endpoint waits.
#pragma once

#include <mutex>
#include <vector>

#include "base/lock.h"
#include "engine/engine.h"

namespace cluster::api {

class Progress {
 public:
  /// An engine may be added more than once; it takes as many removals.
  void add(engine::Engine& engine);
  void remove(engine::Engine& engine);

  void poll() {
    const std::unique_lock guard(lock_, std::try_to_lock);
    if (!guard.owns_lock()) return;
    for (const Member& member : members_) member.engine->poll(false);
  }

 private:
  struct Member {
    engine::Engine* engine;
    int uses;
  };

  SpinLock lock_;
  std::vector<Member> members_;
};

}  // namespace cluster::api
