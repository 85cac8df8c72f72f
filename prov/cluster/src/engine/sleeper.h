// What a thread that waits for a queue sleeps on: the descriptors of the queue's engines, and a signal that
// any thread may raise. Its own descriptor stands for all of them, and the application may use it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "base/environment.h"
#include "engine/engine.h"
#include "os/cancellation.h"
#include "os/wait_set.h"

namespace cluster::engine {

class Sleeper final : public Waker {
 public:
  /// Returns null if there are no descriptors left.
  static std::unique_ptr<Sleeper> open() {
    std::unique_ptr<os::WaitSet> set = os::WaitSet::open();
    std::unique_ptr<os::Signal> signal = os::Signal::open();
    if (set == nullptr || signal == nullptr || !set->add(signal->descriptor(), signal.get())) return nullptr;
    return std::unique_ptr<Sleeper>(new Sleeper(std::move(set), std::move(signal)));
  }

  int descriptor() const { return set_->descriptor(); }
  /// An engine without a descriptor is never armed, so no thread sleeps while that engine matters.
  void add(Engine& engine) {
    if (const int descriptor = engine.descriptor(); descriptor >= 0) set_->add(descriptor, &engine);
  }
  void remove(Engine& engine) {
    if (const int descriptor = engine.descriptor(); descriptor >= 0) set_->remove(descriptor);
  }

  /// Lets one thread at a time sleep until it is woken. Returns false if another thread already sleeps.
  /// release() or the end of the thread ends the claim.
  bool claim() { return claimed_.try_take(); }
  void release() { claimed_.give_back(); }

  void wake() override { signal_->raise(); }
  void clear() override { signal_->lower(); }
  static constexpr std::chrono::milliseconds kForever = std::chrono::milliseconds::max();
  /// Sleeps at most for `limit`. Every engine must be armed.
  os::WaitSet::Wake wait(std::chrono::milliseconds limit) const {
    return set_->sleep(limit == kForever ? std::nullopt : std::optional(limit));
  }

 private:
  Sleeper(std::unique_ptr<os::WaitSet> set, std::unique_ptr<os::Signal> signal)
      : set_(std::move(set)), signal_(std::move(signal)) {}

  std::unique_ptr<os::WaitSet> set_;
  std::unique_ptr<os::Signal> signal_;
  os::RobustMark claimed_;
};

}  // namespace cluster::engine
