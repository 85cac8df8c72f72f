// Starts threads for which no other thread waits.
#pragma once

#include "os/descriptor.h"

namespace cluster::os {

/// Starts a thread with a small stack. The thread blocks all signals, so that the kernel delivers them to
/// threads of the application. Returns 0 or an errno. The thread may still run while static destructors run.
int start_detached_thread(void* (*run)(void*), void* argument);

/// Closes the descriptor in a detached thread. This is for packet sockets: the kernel takes tens of
/// milliseconds to close a packet socket, because it waits for RCU grace periods. If memory is short or the
/// thread cannot start, the calling thread closes the descriptor.
void close_aside(Descriptor descriptor);

}  // namespace cluster::os
