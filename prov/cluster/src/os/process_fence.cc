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

/// An upper bound on the time until a store is visible to other cores.
constexpr auto kStoreSeen = std::chrono::milliseconds(1);

bool join_threads() { return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED); }

/// The kernel can refuse the fence although this process has registered. The process may be a forked child,
/// which has lost the registration, or it may have entered a sandbox after the registration. Other threads
/// still rely on the fence. Therefore this function registers again or, if that fails, sleeps until all
/// stores are visible.
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
  anything.exchange(1, std::memory_order_seq_cst);  // a full fence that sanitizers also understand
  if (joined) std::this_thread::sleep_for(kStoreSeen);
}

ThreadFence thread_fence() {
  static const bool joined = join_threads();
  return joined ? fence_threads : nullptr;
}

}  // namespace cluster::os
