#include <CLI/CLI.hpp>
#include <cinttypes>
#include <cstdio>
#include <exception>

#include "sim/simulation.h"
#include "sim/verdict.h"

namespace {

using namespace cluster::sim;

int run_one(const RunOptions& options, bool quiet) {
  std::printf("seed %" PRIu64 "\n", options.seed);
  std::fflush(stdout);
  try {
    Simulation simulation(options);
    if (!quiet) std::printf("  %s\n", simulation.description().c_str());
    std::fflush(stdout);
    const RunReport report = simulation.run();
    std::printf("  digest %016" PRIx64 "  messages %" PRIu64 " delivered %" PRIu64 " bytes %" PRIu64
                " failures %" PRIu64 " steps %" PRIu64 " simulated %.3f s\n",
                report.digest, report.messages, report.delivered, report.bytes, report.failures, report.steps,
                static_cast<double>(report.duration.count()) / 1e9);
  } catch (const SafetyFailure& failure) {
    std::printf("SAFETY (seed %" PRIu64 "): %s\n", options.seed, failure.what());
    return static_cast<int>(ExitStatus::safety);
  } catch (const LivenessFailure& failure) {
    std::printf("LIVENESS (seed %" PRIu64 "): %s\n", options.seed, failure.what());
    return static_cast<int>(ExitStatus::liveness);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Deterministic simulation"};
  RunOptions options;
  bool quiet = false;
  app.add_option("--seed", options.seed);
  app.add_option("--workload", options.workload);
  app.add_option("--faults", options.faults);
  app.add_option("--hosts", options.hosts);
  app.add_option("--trace", options.trace);
  app.add_flag("--quiet", quiet);
  CLI11_PARSE(app, argc, argv);
  return run_one(options, quiet);
}
