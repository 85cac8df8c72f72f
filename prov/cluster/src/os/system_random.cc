#include "os/system_random.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>
#include <mutex>

#include "base/process_generation.h"

namespace cluster::os {

std::uint64_t SystemRandom::next() {
  const std::lock_guard guard(lock_);
  if (left_ == 0 || generation_ != process_generation.load(std::memory_order_relaxed)) refill();
  return buffer_[--left_];
}

void SystemRandom::refill() {
  ssize_t got = -1;
  do {
    got = getrandom(buffer_.data(), sizeof buffer_, 0);
  } while (got < 0 && errno == EINTR);
  // Ends the process. Without random numbers, other hosts could guess session identities and so end sessions.
  if (got != static_cast<ssize_t>(sizeof buffer_)) std::abort();
  left_ = buffer_.size();
  generation_ = process_generation.load(std::memory_order_relaxed);
}

}  // namespace cluster::os
