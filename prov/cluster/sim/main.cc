// cluster-sim: runs seeds. It prints the seed before anything else happens.
#include <CLI/CLI.hpp>
#include <cinttypes>
#include <cstdio>
#include <exception>
#include <string>
#include <thread>

#include "sim/batch.h"
#include "sim/measure.h"
#include "sim/run.h"
#include "sim/security.h"
#include "sim/seeded_random.h"

namespace {

using namespace cluster::sim;

struct CommandLine {
  BatchOptions batch;
  std::uint64_t seed = 1;
  std::string seed_of;
  bool goodput = false;
  std::string against;
  std::uint32_t scale = 0;
};

std::string list(const std::vector<std::string_view>& names) {
  std::string text = "any";
  for (const std::string_view name : names) text += ", " + std::string(name);
  return text;
}

void declare(CLI::App& app, CommandLine& line) {
  RunOptions& run = line.batch.run;
  app.add_option("--seed", line.seed, "the seed, or the first of several")->capture_default_str();
  app.add_option("--seed-of", line.seed_of, "make the first seed of this text (a commit)");
  app.add_option("--seeds", line.batch.seeds, "how many seeds, one after the other")->capture_default_str();
  app.add_option("--minutes", line.batch.minutes, "go on with further seeds for so long");
  app.add_option("--histories", line.batch.histories,
                 "go on with further seeds until so many histories of words have been judged");
  app.add_flag("--first-failure", line.batch.first_failure, "start no further seed once one has failed");
  app.add_option("--jobs", line.batch.jobs, "processes at a time (0: one per processor)")
      ->capture_default_str();
  app.add_option("--workload", run.workload,
                 "one of: " + list(workload_names()) + ", groups, rings, connections")
      ->capture_default_str();
  app.add_option("--faults", run.faults, "the worst that happens, one of: " + list(severity_names()))
      ->capture_default_str();
  app.add_option("--hosts", run.hosts, "how many hosts (0: drawn)")->capture_default_str();
  app.add_option("--rails", run.rails, "how many between hosts (0: drawn)")->capture_default_str();
  app.add_option("--security", run.security,
                 "keys of the hosts; with one an attacker on the path sends as well. One of: " +
                     list(security_names()))
      ->capture_default_str();
  app.add_option("--attack", run.attack, "a host that is no part of it: none, forger, flooder or siege")
      ->capture_default_str();
  app.add_flag("--translator", run.translator,
               "a router translates the addresses of one host, and changes them; only with --security");
  app.add_flag("--relay", run.relay,
               "two parts of the network are joined only by one or two relays, of which one may die; only "
               "with --security");
  app.add_flag("--devices", run.devices, "some hosts have RDMA devices, which read long messages and fail");
  app.add_flag("!--no-frame-lane", run.frame_lane, "all messages take the general path between hosts");
  app.add_option("--trace", run.trace, "write every frame, order and completion of the run to this file");
  app.add_flag("--goodput", line.goodput, "print the table of goodput against loss");
  app.add_option("--against", line.against,
                 "with --goodput or --scale: compare with this table and fail if something is worse");
  app.add_option("--scale", line.scale, "print what becomes of many hosts, up to so many");
  app.add_flag("--quiet", line.batch.quiet, "no progress");
  app.footer(
      "exit status: 0 good, 1 usage, 2 something happened that never may, 3 something did not happen\n"
      "that must, 4 a run crashed (a single run ends by its signal)");
}

int run_single(RunOptions run) {
  std::printf("seed %" PRIu64 "\n", run.seed);
  std::fflush(stdout);
  const Outcome outcome = run_seed(run, true);
  print_outcome(outcome, run);
  return static_cast<int>(outcome.status);
}

int report_goodput(const std::string& against) {
  const std::string table = goodput_table();
  std::fputs(table.c_str(), stdout);
  if (against.empty()) return 0;
  std::string notes;
  const std::string worse = compare_goodput(table, against, notes);
  if (!notes.empty()) std::printf("better than the table:\n%s", notes.c_str());
  if (!worse.empty()) std::printf("WORSE than the table:\n%s", worse.c_str());
  if (!notes.empty() || !worse.empty())
    std::printf("to accept: cluster-sim --goodput > %s\n", against.c_str());
  return static_cast<int>(worse.empty() ? ExitStatus::good : ExitStatus::liveness);
}

int run_all(CommandLine& line) {
  if (line.goodput) return report_goodput(line.against);
  if (line.scale != 0) {
    const std::string table = scale_table(line.scale);
    const std::string worse = line.against.empty() ? "" : compare_scale(table, line.against);
    if (!worse.empty()) std::printf("WORSE than the table:\n%s", worse.c_str());
    return static_cast<int>(worse.empty() ? ExitStatus::good : ExitStatus::liveness);
  }
  if (!line.seed_of.empty()) line.seed = seed_of_text(line.seed_of);
  line.batch.run.seed = line.seed;
  const bool single = line.batch.seeds == 1 && line.batch.minutes == 0 && line.batch.histories == 0;
  if (single) return run_single(line.batch.run);
  if (line.batch.jobs == 0) line.batch.jobs = std::max(1u, std::thread::hardware_concurrency());
  line.batch.run.trace.clear();
  line.batch.seed = [first = line.seed](std::uint64_t n) { return first + n; };
  std::printf("seeds from %" PRIu64 "\n", line.seed);
  std::fflush(stdout);
  return static_cast<int>(run_batch(line.batch));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Runs the engines of this library on a simulated clock, network and hosts, and judges them."};
  CommandLine line;
  declare(app, line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& wrong) {
    return static_cast<int>(app.exit(wrong) == 0 ? ExitStatus::good : ExitStatus::usage);
  }
  try {
    return run_all(line);
  } catch (const SafetyFailure& failure) {
    std::printf("SAFETY: %s\n", failure.what());
    return static_cast<int>(ExitStatus::safety);
  } catch (const LivenessFailure& failure) {
    std::printf("LIVENESS: %s\n", failure.what());
    return static_cast<int>(ExitStatus::liveness);
  } catch (const std::invalid_argument& wrong) {
    std::fprintf(stderr, "cluster-sim: %s\n", wrong.what());
    return static_cast<int>(ExitStatus::usage);
  }
}
