// What a thread that waits for a queue sleeps on: the descriptors of the queue's engines, and a signal that
// any thread may raise. Its own descriptor stands for all of them and can be handed to the application.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/waker.h"
#include "engine/engine.h"
#include "os/wait_set.h"

namespace cluster::engine {

class Sleeper final : public Waker {
 public:
  using Wake = os::WaitSet::Wake;

  /// Null if there are no descriptors left.
  static std::unique_ptr<Sleeper> open();

  int descriptor() const { return set_->descriptor(); }
  void add(Engine& engine);
  void remove(Engine& engine);

  void wake() override { signal_->raise(); }
  void clear() override { signal_->lower(); }
  static constexpr std::chrono::milliseconds kForever = std::chrono::milliseconds::max();
  /// Sleeps at most that long. Every engine must be armed.
  Wake wait(std::chrono::milliseconds limit) const {
    return limit == kForever ? set_->sleep(std::nullopt) : set_->sleep(limit);
  }

 private:
  Sleeper(std::unique_ptr<os::WaitSet> set, std::unique_ptr<os::Signal> signal)
      : set_(std::move(set)), signal_(std::move(signal)) {}

  std::unique_ptr<os::WaitSet> set_;
  std::unique_ptr<os::Signal> signal_;
};

}  // namespace cluster::engine
