#include "api/region_watch.h"

#include <algorithm>

namespace cluster::api {

void RegionWatch::join(engine::Engine& engine) {
  const std::lock_guard guard(mutex_);
  engines_.push_back(&engine);
  for (Progress* reader : readers_) reader->add(engine);
}

void RegionWatch::leave(engine::Engine& engine) {
  const std::lock_guard guard(mutex_);
  if (std::erase(engines_, &engine) == 0) return;
  for (Progress* reader : readers_) reader->remove(engine);
}

void RegionWatch::begin(Progress& reader) {
  const std::lock_guard guard(mutex_);
  readers_.push_back(&reader);
  for (engine::Engine* engine : engines_) reader.add(*engine);
}

void RegionWatch::end(Progress& reader) {
  const std::lock_guard guard(mutex_);
  readers_.erase(std::find(readers_.begin(), readers_.end(), &reader));
  for (engine::Engine* engine : engines_) reader.remove(*engine);
}

}  // namespace cluster::api
