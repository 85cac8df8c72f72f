// A full fence in all threads of this process (membarrier), for base/biased_lock.h: a thread that takes such
// a lock from its owner pays for the fence, so that the owner need not.
#pragma once

#include "base/biased_lock.h"

namespace cluster::os {

/// Null where the kernel does not have it, or forbids it. Cheap.
ThreadFence thread_fence();

}  // namespace cluster::os
