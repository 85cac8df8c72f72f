// Runs many seeds, each in its own process, so that a seed that crashes or hangs does not affect the others.
// A process writes its result into a pipe. If no result comes, the run has crashed or does not end. A
// progress line says how many seeds have ended.
#pragma once

#include <cstdint>
#include <functional>

#include "sim/run.h"

namespace cluster::sim {

struct BatchOptions {
  RunOptions run;
  std::uint64_t seeds = 1;
  unsigned jobs = 1;
  bool first_failure = false;   ///< starts no further seed after a failure
  std::uint64_t histories = 0;  ///< if not 0: runs further seeds until so many histories have been judged
  double minutes = 0;           ///< if not 0: runs further seeds for so many minutes
  bool quiet = false;
  /// Returns the seed of the n-th run; n counts from 0.
  std::function<std::uint64_t(std::uint64_t)> seed;
};

/// Prints each failure as it comes, and a summary. Returns the worst status.
ExitStatus run_batch(const BatchOptions& options);

}  // namespace cluster::sim
