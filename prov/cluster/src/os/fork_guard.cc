#include "os/fork_guard.h"

#include <pthread.h>

#include "base/process_generation.h"
#include "os/descriptor.h"

namespace cluster::os {
namespace {

ForkHandlers handlers{};

void prepare() { handlers.prepare(); }
void in_parent() { handlers.in_parent(); }
void in_child() {
  process_generation.fetch_add(1, std::memory_order_relaxed);
  OwnedDescriptors::close_all();
  handlers.in_child();
}

}  // namespace

void install_fork_guard(const ForkHandlers& wanted) {
  if (handlers.prepare != nullptr) return;
  handlers = wanted;
  pthread_atfork(prepare, in_parent, in_child);
}

}  // namespace cluster::os
