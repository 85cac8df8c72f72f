// What completion queues hold, for tests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "protocol/completion.h"

namespace cluster::test {

/// Takes all completions out of a queue. The oldest is the first.
inline std::vector<protocol::Completion> take(protocol::CompletionQueue& queue) {
  std::vector<protocol::Completion> taken;
  queue.drain(
      ~std::size_t{0}, [](const protocol::Completion&) { return true; },
      [&](const protocol::Completion& each) { taken.push_back(each); });
  return taken;
}

/// Takes all completions out of a queue and returns how they ended.
inline std::vector<Status> take_outcomes(protocol::CompletionQueue& queue) {
  std::vector<Status> outcomes;
  for (const protocol::Completion& each : take(queue)) outcomes.push_back(each.status);
  return outcomes;
}

/// Takes all completions out of a queue and counts those that ended so.
inline std::size_t take_count(protocol::CompletionQueue& queue, Status status = Status::ok) {
  return static_cast<std::size_t>(std::ranges::count(take_outcomes(queue), status));
}

}  // namespace cluster::test
