// A HelperThread runs work that spends its time waiting in the kernel. Meanwhile the caller can do other work
// of this kind.
#pragma once

#include <csignal>
#include <exception>
#include <functional>
#include <optional>
#include <thread>

namespace cluster::os {

/// The constructor runs `work` in a new thread, and the destructor waits until `work` has returned. If memory
/// is short or the thread cannot start, the constructor itself runs `work`. An exception that leaves `work`
/// in the new thread ends the process. The new thread blocks all signals, because signals are for the
/// application.
class HelperThread {
 public:
  explicit HelperThread(const std::function<void()>& work) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_.emplace(work);
    } catch (const std::exception&) {  // the caller runs `work` below
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!thread_) work();
  }

 private:
  std::optional<std::jthread> thread_;
};

}  // namespace cluster::os
