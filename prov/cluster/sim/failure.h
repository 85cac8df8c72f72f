// How a run ends. A safety failure is an event that must never happen. A liveness failure is the absence of
// an event that must happen. Both end the run at once.
#pragma once

#include <stdexcept>
#include <string>

namespace cluster::sim {

class SafetyFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class LivenessFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The exit status of cluster-sim. If a single run crashes, the process ends with the signal of the crash
/// instead.
enum class ExitStatus : int { good = 0, usage = 1, safety = 2, liveness = 3, crash = 4 };

}  // namespace cluster::sim
