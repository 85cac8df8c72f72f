// Threads of the library's own: detached, with a small stack, all signals blocked. They may run while static
// destructors do, so nothing they touch may be destroyed. A forked child has none of them.
#pragma once

#include <cstddef>

namespace cluster::os {

/// Starts `run(argument)` on a thread named `name` (at most 15 characters). 0 or an errno.
int start_background_thread(const char* name, std::size_t stack_bytes, void* (*run)(void*), void* argument);

}  // namespace cluster::os
