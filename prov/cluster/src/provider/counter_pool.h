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
  Counters& acquire();
  void release(Counters& counters);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Counters>> all_;
  std::vector<Counters*> free_;
};

}  // namespace cluster::provider
