#include "api/mr_progress.h"

#include <algorithm>

namespace cluster::api {

void MrProgress::join(engine::Engine& engine) {
  const std::lock_guard guard(mutex_);
  engines_.push_back(&engine);
  for (Progress* reader : readers_) reader->add(engine);
}

void MrProgress::leave(engine::Engine& engine) {
  const std::lock_guard guard(mutex_);
  if (std::erase(engines_, &engine) == 0) return;
  for (Progress* reader : readers_) reader->remove(engine);
}

void MrProgress::begin(Progress& reader) {
  const std::lock_guard guard(mutex_);
  readers_.push_back(&reader);
  for (engine::Engine* engine : engines_) reader.add(*engine);
}

void MrProgress::end(Progress& reader) {
  const std::lock_guard guard(mutex_);
  readers_.erase(std::find(readers_.begin(), readers_.end(), &reader));
  for (engine::Engine* engine : engines_) reader.remove(*engine);
}

}  // namespace cluster::api
