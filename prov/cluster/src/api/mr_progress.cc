#include "api/mr_progress.h"

#include <algorithm>

namespace cluster::api {

void MrProgress::add_engine(engine::Engine& engine) {
  const std::lock_guard guard(mutex_);
  engines_.push_back(&engine);
  for (Progress* progress : counters_) progress->add(engine);
}

void MrProgress::remove_engine(engine::Engine& engine) {
  const std::lock_guard guard(mutex_);
  if (std::erase(engines_, &engine) == 0) return;
  for (Progress* progress : counters_) progress->remove(engine);
}

void MrProgress::add_counter(Progress& counter_progress) {
  const std::lock_guard guard(mutex_);
  counters_.push_back(&counter_progress);
  for (engine::Engine* engine : engines_) counter_progress.add(*engine);
}

void MrProgress::remove_counter(Progress& counter_progress) {
  const std::lock_guard guard(mutex_);
  counters_.erase(std::find(counters_.begin(), counters_.end(), &counter_progress));
  for (engine::Engine* engine : engines_) counter_progress.remove(*engine);
}

}  // namespace cluster::api
