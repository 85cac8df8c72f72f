// A memory fence that costs only the side that goes to sleep. Two sides each write one word and then read the
// other's word. If both execute a full fence in between, at least one of them sees what the other wrote. For
// each message, a sender checks whether its peer sleeps. It cannot afford a fence there: it would wait each
// time until its store has reached the other core. So the sleeper executes a fence in all processes at once
// (membarrier). The sender only keeps its compiler from changing the order.
//
// A process takes part once it has called register_process_fence(). Where the kernel lacks membarrier or
// forbids it, both sides execute fences of their own.
//
// A BiasedLock does the same inside one process: a thread that takes the lock from its owner pays for the
// fence, so the owner need not.
#pragma once

#include "base/lock.h"

namespace cluster::os {

/// Registers this process. Returns true if fences of other processes reach it, and fence_processes() works.
/// Cheap.
bool register_process_fence();

/// Executes a full fence in this thread and, if this process has registered, in all threads of all registered
/// processes.
void fence_processes();

/// Returns the function that executes a full fence in all threads of this process; null where the kernel
/// lacks or forbids it. Cheap.
ThreadFence thread_fence();

}  // namespace cluster::os
