// bare_perf: measures the machine without any transport; see --help.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "bare.h"
#include "processor.h"

namespace {

using namespace perf;

struct CommandLine {
  std::vector<std::string> items;
  std::string call;
  WireChoice wire;
  DatagramChoice datagram;
  double milliseconds = 100;
  unsigned limit = 120;
  bool distance = false;
  MeasurementSettings conduct;
};

void declare(CLI::App& app, CommandLine& line) {
  app.add_option("--call", line.call,
                 "HOST:PORT of the other side, as it printed it; without, this side answers");
  app.add_option("--cpu", line.conduct.own_cpu, "run on this processor only");
  app.add_option("--other-cpu", line.conduct.other_cpu, "where the other side runs: measures the distance");
  app.add_option("--milliseconds", line.milliseconds, "length of one run")->capture_default_str();
  app.add_option("--limit", line.limit, "give up after so many seconds")->capture_default_str();
  app.add_flag("--distance", line.distance,
               "only print the nanoseconds of a cache line from --cpu to --other-cpu; no other side needed");
  declare(app, line.wire);
  app.add_flag("--sleep", line.datagram.sleeps, "for datagrams: sleep in recv() until there is one");
  app.add_option("--busy-poll", line.datagram.busy_poll,
                 "for datagrams: SO_BUSY_POLL and SO_PREFER_BUSY_POLL, so many microseconds");
  app.add_option("items", line.items, "what to measure; both sides must be given the same");
  app.footer(
      "measures, as MEASURE:BYTES[:WINDOW]:\n"
      "  ring        one-way time through a ring in shared memory\n"
      "  ring_rate   messages per second through it, WINDOW, then one answer\n"
      "  futex       one-way time of a word in shared memory whose reader has been asleep for a while\n"
      "  copy        bytes per second that one core copies\n"
      "  frame       one-way time of a raw Ethernet frame\n"
      "  frame_rate  frames per second, WINDOW, then one answer\n"
      "  super       bytes per second in super-frames of so many segments (1 to 44) of 1472 bytes, WINDOW "
      "of\n"
      "              them under way, with PACKET_VNET_HDR and as UDP in any case; wants --slot-bytes 65664\n"
      "  datagram    one-way time of a datagram through UDP sockets; standard error says whether their\n"
      "              driver has a queue that could be polled\n"
      "  asleep      the same where the reader has been asleep in recv() for a while\n"
      "  stream      bytes per second through UDP sockets that send and receive up to 64 KB a call, WINDOW\n"
      "              messages, then one answer\n"
      "exit status: 0 good, 1 failed, 2 usage");
}

Benchmark work_for(const Item& item, ControlConnection& line, const CommandLine& options) {
  const WireChoice& wire = options.wire;
  if (item.measure == "ring" || item.measure == "ring_rate") return ring_measure(item, line);
  if (item.measure == "futex") return futex_measure(item, line);
  if (item.measure == "copy") return copy_measure(item);
  if (item.measure == "frame" || item.measure == "frame_rate") return frame_measure(item, line, wire);
  if (item.measure == "super") return super_frame_measure(item, line, wire);
  if (item.measure == "datagram") return datagram_measure(item, line, wire, options.datagram);
  if (item.measure == "asleep") {
    return datagram_measure(item, line, wire, {.sleeps = true, .busy_poll = 0}, kFallAsleepSeconds);
  }
  if (item.measure == "stream") return stream_measure(item, line, wire);
  throw std::invalid_argument("there is no measure '" + item.measure + "'");
}

void run(CommandLine& options) {
  const std::vector<Item> plan = parse_plan(options.items);
  if (plan.empty()) throw std::invalid_argument("nothing to measure");
  ControlConnection line = connect_sides(options.call);
  options.conduct.seconds = options.milliseconds / 1e3;
  options.conduct.work = [&](const Item& item) { return work_for(item, line, options); };
  if (options.call.empty()) {
    follow(line, options.conduct);
  } else {
    lead({&line, 1}, plan, options.conduct);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What the machine gives without any transport.", "bare_perf");
  CommandLine options;
  declare(app, options);
  CLI11_PARSE(app, argc, argv);
  ::alarm(options.limit);
  if (options.conduct.own_cpu >= 0 && !pin(options.conduct.own_cpu)) {
    std::fprintf(stderr, "bare_perf: may not run on processor %d\n", options.conduct.own_cpu);
    return 2;
  }
  try {
    if (options.distance) {
      std::printf("%.1f\n", cache_line_ns(options.conduct.other_cpu));
    } else {
      run(options);
    }
    return 0;
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "bare_perf: %s (see --help)\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bare_perf: %s\n", error.what());
    return 1;
  }
}
