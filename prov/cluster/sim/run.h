// Runs one seed, and puts the result into a form that fits through a pipe. A run never looks at the real
// clock: the same seed ends the same way on every machine.
#pragma once

#include <array>
#include <cstdint>

#include "sim/failure.h"
#include "sim/simulation.h"

namespace cluster::sim {

struct Outcome {
  ExitStatus status = ExitStatus::good;
  std::uint64_t seed = 0;
  std::uint64_t digest = 0;
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t failures = 0;
  std::uint64_t frames = 0;
  std::uint64_t histories = 0;
  std::uint64_t steps = 0;
  std::int64_t simulated_ns = 0;
  std::array<char, 512> description{};
  std::array<char, 1024> error_text{};  ///< what went wrong; empty if nothing did
};

/// Runs the seed. The failures that the oracle throws become part of the outcome. `announce`: print what was
/// drawn before the run begins.
Outcome run_seed(const RunOptions& options, bool announce);

/// Prints the result. After a failure, also prints the command that repeats the run.
void print_outcome(const Outcome& outcome, const RunOptions& options);

}  // namespace cluster::sim
