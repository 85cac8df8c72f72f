// Scale: many hosts at once, all to all and all to one.
#include <cstdio>

#include "sim/measure.h"

namespace cluster::sim {
namespace {

constexpr std::size_t kSmall = 8;
constexpr std::size_t kLarge = 64 * 1024;
constexpr std::size_t kHuge = 1024 * 1024;

void print_row(const char* what, const Scenario& scenario) {
  const Measured measured = measure(scenario);
  const double port = static_cast<double>(scenario.port.bits_per_second) / 1e9;
  const bool incast = scenario.plan.pattern == Pattern::incast;
  const double ports = incast ? 1 : scenario.hosts;
  std::printf("%-22s %6u %9zu %9.3f %8.1f %7.3f %8.3f %10.3f %10.3f %10zu\n", what, scenario.hosts,
              scenario.plan.sizes.fixed, measured.gigabits(), 100 * measured.gigabits() / (port * ports),
              100 * measured.lost_share(), 100 * measured.retransmitted_share(),
              static_cast<double>(measured.worst_stall.count()) / 1e6,
              static_cast<double>(measured.duration.count()) / 1e6, measured.bytes_per_peer);
  std::fflush(stdout);
}

void incast(std::uint32_t senders, std::size_t size, std::uint32_t messages) {
  Scenario scenario;
  scenario.hosts = senders + 1;
  scenario.plan = plain_plan(Pattern::incast, size, messages);
  scenario.plan.in_flight = 2;
  scenario.plan.receive_depth = 2 * senders;
  scenario.port.bits_per_second = 1'000'000'000;
  scenario.port.switch_queue_bytes = 64 * 1024;
  scenario.port.delay = 5us;
  const std::string what = std::to_string(senders) + " to one, 64 KB buffer";
  print_row(what.c_str(), scenario);
}

void all_to_all(std::uint32_t hosts, std::size_t size) {
  Scenario scenario;
  scenario.hosts = hosts;
  scenario.plan = plain_plan(Pattern::all_to_all, size, hosts - 1);
  scenario.plan.in_flight = 16;
  scenario.plan.receive_depth = 32;
  scenario.port.delay = 5us;
  print_row("all to all", scenario);
}

}  // namespace

void print_scale(std::uint32_t most_hosts) {
  std::printf(
      "# All to all: 10 Gbit/s ports with 512 KB, one message to each other host. Many to one: 1 Gbit/s\n"
      "# ports with 64 KB. Simulated time; state: the largest memory of an engine by its peers.\n"
      "#\n"
      "# what                  hosts     bytes    Gbit/s   port %%  lost %%  again %%   stall ms    took ms "
      " state/peer\n");
  for (const std::uint32_t senders : {16u, 64u, 256u}) {
    if (senders >= most_hosts) continue;
    incast(senders, kHuge, std::max(2u, 64u / senders));
    incast(senders, kLarge, 8);
  }
  for (const std::uint32_t hosts : {50u, 200u, 500u, 1000u}) {
    if (hosts > most_hosts) continue;
    all_to_all(hosts, kSmall);
    if (hosts <= 200) all_to_all(hosts, kLarge);
  }
}

}  // namespace cluster::sim
