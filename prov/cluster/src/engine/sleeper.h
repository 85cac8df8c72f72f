// A thread sleeps on a sleeper to wait for a queue or a counter. The thread wakes when one of the engines of
// the queue or counter has work, or when another thread calls wake(). A sleeper combines the descriptors of
// the engines and of a signal into one descriptor. The application may also sleep on that descriptor.
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
  /// Returns null if no descriptor is free.
  static std::unique_ptr<Sleeper> open() {
    std::unique_ptr<os::WaitSet> set = os::WaitSet::open();
    std::unique_ptr<os::Signal> signal = os::Signal::open();
    if (set == nullptr || signal == nullptr || !set->add(signal->descriptor(), signal.get())) return nullptr;
    return std::unique_ptr<Sleeper>(new Sleeper(std::move(set), std::move(signal)));
  }

  int descriptor() const { return set_->descriptor(); }
  /// Adds the engine's descriptor. An engine without a descriptor is ignored. It can never be armed, so no
  /// thread sleeps while the queue has such an engine.
  void add(Engine& engine) {
    if (const int descriptor = engine.descriptor(); descriptor >= 0) set_->add(descriptor, &engine);
  }
  void remove(Engine& engine) {
    if (const int descriptor = engine.descriptor(); descriptor >= 0) set_->remove(descriptor);
  }

  /// Adds the descriptor of another sleeper, which must be removed before that sleeper is destroyed.
  void add(const Sleeper& other) { set_->add(other.descriptor(), nullptr); }
  void remove(const Sleeper& other) { set_->remove(other.descriptor()); }

  /// Claims the sleeper for the calling thread. A wake-up reaches only one thread, so only the thread with
  /// the claim may sleep here without a time limit. Returns false if another thread holds the claim. The
  /// claim ends with release() or with the end of the thread.
  bool claim() { return claimed_.try_take(); }
  void release() { claimed_.give_back(); }

  void wake() override { signal_->raise(); }
  void clear() override { signal_->lower(); }
  static constexpr std::chrono::milliseconds kForever = std::chrono::milliseconds::max();
  /// Sleeps until the descriptor is readable, but not longer than `limit`. All engines must be armed.
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
