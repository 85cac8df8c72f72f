#include "provider/counter_pool.h"

namespace cluster::provider {

Counters& CounterPool::acquire() {
  const std::lock_guard guard(mutex_);
  if (free_.empty()) {
    all_.push_back(std::make_unique<Counters>());
    free_.reserve(all_.size());  // so that release() never allocates
    return *all_.back();
  }
  Counters& counters = *free_.back();
  free_.pop_back();
  counters = {};
  return counters;
}

void CounterPool::release(Counters& counters) {
  const std::lock_guard guard(mutex_);
  free_.push_back(&counters);
}

}  // namespace cluster::provider
