// Runs work that waits in the kernel on a thread of its own. Meanwhile the caller does other work of this
// kind.
#pragma once

#include <csignal>
#include <exception>
#include <functional>
#include <optional>
#include <thread>

namespace cluster::os {

/// Runs `work` in a thread of its own, and waits for its end in the destructor. If there is no memory or no
/// further thread, the constructor runs `work` itself. All signals are blocked in the thread, because they
/// are for the application.
class HelperThread {
 public:
  explicit HelperThread(const std::function<void()>& work) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_.emplace(work);
    } catch (const std::exception&) {
      work();
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

 private:
  std::optional<std::jthread> thread_;
};

}  // namespace cluster::os
