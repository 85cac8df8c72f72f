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
}

void Progress::remove(engine::Engine& engine) {
  const std::lock_guard guard(lock_);
  const auto member = std::find_if(members_.begin(), members_.end(),
                                   [&](const Member& candidate) { return candidate.engine == &engine; });
  if (member != members_.end() && --member->uses == 0) members_.erase(member);
}

}  // namespace cluster::api
