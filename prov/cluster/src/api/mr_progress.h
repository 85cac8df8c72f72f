// What the counters of a domain's regions hear of. A region belongs to no endpoint: peers reach it by every
// endpoint of its domain that serves remote access. So whoever reads such a counter moves all of these,
// those that come later too.
#pragma once

#include <mutex>
#include <vector>

#include "api/progress.h"

namespace cluster::api {

class MrProgress {
 public:
  /// An engine serves the regions from now on, or does no more.
  void join(engine::Engine& engine);
  void leave(engine::Engine& engine);

  /// A region's counter reads on behalf of all of them. It may do so more than once; it takes as many ends.
  void begin(Progress& reader);
  void end(Progress& reader);

 private:
  std::mutex mutex_;
  std::vector<engine::Engine*> engines_;
  std::vector<Progress*> readers_;
};

}  // namespace cluster::api
