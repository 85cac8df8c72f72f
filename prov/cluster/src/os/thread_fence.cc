#include "os/thread_fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace cluster::os {
namespace {

bool membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }

bool join() { return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED); }

/// Longer than any store takes to become visible to other cores.
constexpr auto kStoreSeen = std::chrono::milliseconds(1);

/// A process that could register and is refused now was forked without its registration, or has entered a
/// sandbox since.
void fence() {
  if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
  if (join() && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
  std::this_thread::sleep_for(kStoreSeen);
}

}  // namespace

ThreadFence thread_fence() {
  static const bool joined = join();
  return joined ? fence : nullptr;
}

}  // namespace cluster::os
