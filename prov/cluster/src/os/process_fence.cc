#include "os/process_fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace cluster::os {
namespace {

bool membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }

/// Longer than any store takes to become visible to other cores.
constexpr auto kStoreSeen = std::chrono::milliseconds(1);

bool join_threads() { return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED); }

/// If the kernel refuses although this process could register, the process was forked without its
/// registration, or has entered a sandbox since. Others still rely on its fences, so it waits until every
/// store must be visible.
void fence_threads() {
  if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
  if (join_threads() && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
  std::this_thread::sleep_for(kStoreSeen);
}

}  // namespace

bool register_process_fence() {
  static const bool joined = membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
  return joined;
}

void fence_processes() {
  const bool joined = register_process_fence();
  if (joined && membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED)) return;
  static std::atomic<int> anything{0};
  anything.exchange(1, std::memory_order_seq_cst);  // a full fence that sanitizers understand, too
  if (joined) std::this_thread::sleep_for(kStoreSeen);
}

ThreadFence thread_fence() {
  static const bool joined = join_threads();
  return joined ? fence_threads : nullptr;
}

}  // namespace cluster::os
