// A memory fence that costs time only on the side that goes to sleep. Two sides each write one word and then
// read the other side's word. If both execute a full fence between the write and the read, at least one of
// them sees what the other wrote. A sender checks for each message whether its peer sleeps. A fence in that
// check would be too slow, because the sender would wait until its store has reached the other core.
// Therefore the side that goes to sleep executes a fence in all processes at once (membarrier). The sender
// only prevents the compiler from reordering its write and its read.
//
// The fence includes every process that has called register_process_fence(). If the kernel lacks or forbids
// membarrier, each side executes its own fence.
//
// A BiasedLock uses the same method inside one process. A thread that takes the lock from its owner executes
// a fence in all threads. Therefore the owner needs no fence.
#pragma once

#include "base/lock.h"

namespace cluster::os {

/// Registers this process. Returns true on success. Then a fence of any registered process includes all
/// registered processes. Only the first call makes a system call.
bool register_process_fence();

/// Registers this process if that has not happened yet. Executes a full fence in this thread and, if this
/// process is registered, in all threads of all registered processes.
void fence_processes();

/// Returns the function that executes a full fence in all threads of this process. Returns null if the kernel
/// lacks or forbids membarrier. Only the first call makes a system call.
ThreadFence thread_fence();

}  // namespace cluster::os
