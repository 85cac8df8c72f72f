// What fork() must not do: leave a child with the descriptors of its parent. Through them the parent's ports, names and
// connections would outlive it, so that its peers waited for a dead process. The guard closes them in the child
// before fork() returns there; what is left of the parent's objects must not be used or destroyed
// (base/process_generation.h). A child that was made without fork handlers (vfork, clone) has them until exec()
// closes them: peers on this node watch the process itself (os/peer_process.h).
#pragma once

#include <atomic>
#include <cstddef>

namespace cluster::os {

struct ForkHandlers {
  void (*prepare)();
  void (*in_parent)();
  void (*in_child)();
};

/// From now on, for the life of the process; the first call counts.
void install_fork_guard(const ForkHandlers& handlers);

}  // namespace cluster::os
