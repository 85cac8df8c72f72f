// A guard that does some work at the end of a scope.
#pragma once

namespace cluster {

/// Calls `act` at the end of the scope, even if an exception or a return leaves the scope.
template <typename Act>
struct [[nodiscard]] OnExit {
  explicit OnExit(Act&& what) : act(what) {}
  ~OnExit() { act(); }
  OnExit(const OnExit&) = delete;
  OnExit& operator=(const OnExit&) = delete;

  const Act act;
};

}  // namespace cluster
