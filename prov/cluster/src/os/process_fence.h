// A memory fence whose cost lies with the side that goes to sleep. Of two sides that each write one word and
// then read the other's, at least one sees what the other wrote only if both have a full fence in between. A
// sender that looks on every message whether its peer sleeps cannot afford one (it would wait each time until
// its store has reached the other core). So the sleeper executes one in all processes at once (membarrier),
// and the sender only keeps its compiler from changing the order.
//
// A process takes part once it has called register_process_fence(). Where the kernel does not have it, or
// forbids it, both sides execute fences of their own.
//
// Inside one process it is the same with a BiasedLock: a thread that takes one from its owner pays for the
// fence, so that the owner need not.
#pragma once

#include "base/biased_lock.h"

namespace cluster::os {

/// True if fences of other processes reach this one, and fence_processes() works. Cheap.
bool register_process_fence();

/// A full fence in this thread and, if it has joined, in every thread that has joined anywhere.
void fence_processes();

/// A full fence in all threads of this process. Null where the kernel does not have it, or forbids it. Cheap.
ThreadFence thread_fence();

}  // namespace cluster::os
