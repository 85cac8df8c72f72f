#include "api/progress.h"

#include <algorithm>

namespace cluster::api {

void Progress::add(engine::Engine& engine) {
  const std::lock_guard guard(lock_);
  for (Member& member : members_) {
    if (member.engine != &engine) continue;
    ++member.uses;
    return;
  }
  members_.push_back({&engine, 1});
  if (owned_ == nullptr) return;
  owned_->add(engine);
  owned_->wake();  // because a sleeping thread has not armed this engine
}

void Progress::remove(engine::Engine& engine) {
  const std::lock_guard guard(lock_);
  const auto member = std::find_if(members_.begin(), members_.end(),
                                   [&](const Member& candidate) { return candidate.engine == &engine; });
  if (member == members_.end() || --member->uses > 0) return;
  members_.erase(member);
  if (owned_ != nullptr) owned_->remove(engine);
}

engine::Sleeper* Progress::sleeper() {
  if (wait_object_ == FI_WAIT_YIELD) return nullptr;
  if (engine::Sleeper* sleeper = sleeper_.load()) return sleeper;
  const std::lock_guard guard(lock_);
  if (owned_ == nullptr) {
    owned_ = platform_.open_sleeper();
    if (owned_ == nullptr) return nullptr;
    for (const Member& member : members_) owned_->add(*member.engine);
    sleeper_.store(owned_.get());
  }
  return owned_.get();
}

bool Progress::arm() {
  const std::lock_guard guard(lock_);
  return std::all_of(members_.begin(), members_.end(),
                     [](const Member& member) { return member.engine->arm(); });
}

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
  try {
    for (engine::Engine* engine : engines_) counter_progress.add(*engine);
  } catch (...) {  // memory has run out
    counters_.pop_back();
    for (engine::Engine* engine : engines_) counter_progress.remove(*engine);
    throw;
  }
}

void MrProgress::remove_counter(Progress& counter_progress) {
  const std::lock_guard guard(mutex_);
  counters_.erase(std::find(counters_.begin(), counters_.end(), &counter_progress));
  for (engine::Engine* engine : engines_) counter_progress.remove(*engine);
}

}  // namespace cluster::api
