// A memory fence whose cost lies with the side that goes to sleep. Two sides each write one word and then read the other's. At least one
// of them sees what the other wrote, but only if both have a full fence in between. A sender that looks on every message whether its peer
// sleeps cannot afford a fence: it would wait each time until its store has reached the other core. So the sleeper executes one in all
// processes at once (membarrier), and the sender only keeps its compiler from changing the order.
//
// A process takes part once it has called register_process_fence(). Where the kernel lacks membarrier or forbids it, both sides execute
// fences of their own.
//
// A BiasedLock does the same inside one process: a thread that takes the lock from its owner pays for the fence, so the owner need
// not.
#pragma once

#include "base/lock.h"

namespace cluster::os {

/// True if fences of other processes reach this one, and fence_processes() works. Cheap.
bool register_process_fence();

/// A full fence in this thread and, if it has joined, in every thread that has joined anywhere.
void fence_processes();

/// The function that executes a full fence in all threads of this process; null where the kernel lacks or forbids it. Cheap.
ThreadFence thread_fence();

}  // namespace cluster::os
