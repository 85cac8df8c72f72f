// Threads for which nobody waits.
#pragma once

#include "os/descriptor.h"

namespace cluster::os {

/// Starts a thread with a small stack. All signals are blocked in it, so that the kernel delivers them to
/// threads of the application. Returns 0 or an errno. The thread may still run while static destructors run.
int start_detached_thread(void* (*run)(void*), void* argument);

/// Closes the descriptor in a detached thread. Packet sockets need this: the kernel takes tens of
/// milliseconds to close one, because it waits for RCU grace periods. If there is no memory or no further
/// thread, the function closes the descriptor itself.
void close_aside(Descriptor descriptor);

}  // namespace cluster::os
