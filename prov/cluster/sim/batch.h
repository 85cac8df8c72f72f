// Runs many seeds, each in its own process, so that a seed that crashes or hangs does not affect the others.
// Each seed is judged by how its process ends; the progress line says how many did so far.
#pragma once

#include <cstdint>
#include <functional>

#include "sim/run.h"

namespace cluster::sim {

struct BatchOptions {
  RunOptions run;
  std::uint64_t seeds = 1;
  unsigned jobs = 1;
  bool first_failure = false;   ///< ends there
  std::uint64_t histories = 0;  ///< if not 0: go on with further seeds until so many have been judged
  double minutes = 0;           ///< if not 0: go on with further seeds until so many have passed
  bool quiet = false;
  /// The seed of the n-th run.
  std::function<std::uint64_t(std::uint64_t)> seed;
};

/// Prints failures as they come and a summary; returns the worst status.
ExitStatus run_batch(const BatchOptions& options);

}  // namespace cluster::sim
