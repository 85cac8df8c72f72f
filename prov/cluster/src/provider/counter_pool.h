// The counters of the endpoints of this process. They are reused after an endpoint has gone and never freed,
// because parts of an engine still count while it is destroyed.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/counters.h"

namespace cluster::provider {

class CounterPool {
 public:
  Counters& acquire() {
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
  void release(Counters& counters) {
    const std::lock_guard guard(mutex_);
    free_.push_back(&counters);
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Counters>> all_;
  std::vector<Counters*> free_;
};

}  // namespace cluster::provider
