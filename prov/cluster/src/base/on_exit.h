// Work that is done at the end of a scope, like a destructor without a class of its own.
#pragma once

namespace cluster {

/// Calls `act` at the end of its scope, however the program leaves the scope.
template <typename Act>
struct [[nodiscard]] OnExit {
  explicit OnExit(Act&& what) : act(what) {}
  ~OnExit() { act(); }
  OnExit(const OnExit&) = delete;
  OnExit& operator=(const OnExit&) = delete;

  const Act act;
};

}  // namespace cluster
