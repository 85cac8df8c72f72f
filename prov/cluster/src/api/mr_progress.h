// Progress of the counters that are bound to memory regions. A region belongs to no endpoint: peers access it
// through every endpoint of its domain that serves remote access. So reading such a counter makes progress on
// all of their engines, those that are enabled later included.
#pragma once

#include <mutex>
#include <vector>

#include "api/progress.h"

namespace cluster::api {

class MrProgress {
 public:
  /// An engine that serves the regions of the domain.
  void add_engine(engine::Engine& engine);
  void remove_engine(engine::Engine& engine);

  /// The progress of a counter that is bound to a region; may be added more than once, and takes as many
  /// removals.
  void add_counter(Progress& counter_progress);
  void remove_counter(Progress& counter_progress);

 private:
  std::mutex mutex_;
  std::vector<engine::Engine*> engines_;
  std::vector<Progress*> counters_;
};

}  // namespace cluster::api
