#include "os/spare_descriptors.h"

#include "base/process_generation.h"

namespace cluster::os {

/// A forked child opens a reserve of its own, because the fork guard (os/descriptor.h) has closed the child's
/// copies of the parent's descriptors.
std::shared_ptr<SpareDescriptors> SpareDescriptors::of_process() {
  static std::mutex& mutex = *new std::mutex;
  static std::weak_ptr<SpareDescriptors>& known = *new std::weak_ptr<SpareDescriptors>;
  static unsigned generation = 0;
  const std::lock_guard guard(mutex);
  const unsigned now = process_generation.load(std::memory_order_relaxed);
  std::shared_ptr<SpareDescriptors> spares = generation == now ? known.lock() : nullptr;
  if (spares == nullptr) spares.reset(new SpareDescriptors);
  known = spares;
  generation = now;
  return spares;
}

void SpareDescriptors::reserve() {
  for (Descriptor& spare : spares_) {
    if (!spare) spare = Descriptor::spare();
  }
}

}  // namespace cluster::os
