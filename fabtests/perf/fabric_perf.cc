// fabric_perf: one side of a measurement over any libfabric provider; see --help.
#include <rdma/fi_errno.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "measures.h"
#include "processor.h"

namespace {

using namespace perf;

constexpr int kEnosys = 3;

struct CommandLine {
  std::vector<std::string> items;
  Request request;
  std::string call;  ///< HOST:PORT of the other side; empty: we answer
  std::string threading = "domain";
  std::string wait = "spin";
  bool cold = false;
  double milliseconds = 100;
  unsigned limit = 120;
  MeasurementSettings conduct;
};

void declare(CLI::App& app, CommandLine& line) {
  app.add_option("--provider", line.request.provider, "libfabric provider, such as cluster, shm, tcp;ofi_rxm")
      ->required();
  app.add_option("--node", line.request.node, "own address to use (default: what the provider offers first)");
  app.add_option("--call", line.call,
                 "HOST:PORT of the other side, as it printed it; without, this side answers");
  app.add_option("--cpu", line.conduct.own_cpu, "run on this processor only");
  app.add_option("--other-cpu", line.conduct.other_cpu, "where the other side runs: measures the distance");
  app.add_option("--milliseconds", line.milliseconds, "length of one run")->capture_default_str();
  app.add_option("--threading", line.threading, "promise to the provider: domain or safe")
      ->check(CLI::IsMember({"domain", "safe"}))
      ->capture_default_str();
  app.add_option("--wait", line.wait, "while nothing completes: spin, yield the processor, or block")
      ->check(CLI::IsMember({"spin", "yield", "block"}))
      ->capture_default_str();
  app.add_flag("--cold", line.cold, "every message in memory that is in no cache");
  app.add_option("--limit", line.limit, "give up after so many seconds")->capture_default_str();
  app.add_option("items", line.items, "what to measure; both sides must be given the same")->required();
  app.footer(describe_measures() +
             "The side that calls prints one JSON object per line.\n"
             "exit status: 0 good, 1 failed, 2 usage, 3 the provider does not offer this here");
}

void print_head(const Endpoints& side) {
  const fi_info& info = side.info();
  std::printf("{\"provider\": \"%s\", \"domain\": \"%s\", \"libfabric\": \"%u.%u\", \"inject\": %zu}\n",
              info.fabric_attr->prov_name, info.domain_attr->name, FI_MAJOR(fi_version()),
              FI_MINOR(fi_version()), info.tx_attr->inject_size);
}

void run(CommandLine& options) {
  const std::vector<Item> plan = parse_plan(options.items);
  ask_for(plan, options.cold, options.request);
  options.request.threading = options.threading == "safe" ? FI_THREAD_SAFE : FI_THREAD_DOMAIN;
  options.request.waiting = options.wait == "block"   ? Waiting::block
                            : options.wait == "yield" ? Waiting::yield
                                                      : Waiting::spin;
  ControlConnection line = connect_sides(options.call);
  Endpoints side(options.request, line);
  options.conduct.seconds = options.milliseconds / 1e3;
  options.conduct.work = [&](const Item& item) { return work_for(side, item, options.cold); };
  options.conduct.progress = [&] { side.progress(); };
  if (options.call.empty()) {
    follow(line, options.conduct);
  } else {
    print_head(side);
    lead({&line, 1}, plan, options.conduct);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("One side of a measurement over a libfabric provider.", "fabric_perf");
  CommandLine options;
  declare(app, options);
  CLI11_PARSE(app, argc, argv);
  ::alarm(options.limit);
  if (options.conduct.own_cpu >= 0 && !pin(options.conduct.own_cpu)) {
    std::fprintf(stderr, "fabric_perf: may not run on processor %d\n", options.conduct.own_cpu);
    return 2;
  }
  try {
    run(options);
    return 0;
  } catch (const NotOffered& error) {
    std::fprintf(stderr, "fabric_perf: %s\n", error.what());
    return kEnosys;
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "fabric_perf: %s (see --help)\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fabric_perf: %s\n", error.what());
    return 1;
  }
}
