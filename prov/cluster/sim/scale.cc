// Measures scale with many hosts: all to all, many to one, and one to a group of all.
#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "sim/group_scale.h"
#include "sim/measure.h"

namespace cluster::sim {
namespace {

constexpr std::size_t kSmall = 8;
constexpr std::size_t kLarge = 64 * 1024;
constexpr std::size_t kHuge = 1024 * 1024;

constexpr std::size_t kNameWidth = 24;

/// A column, and by how much a fresh value may be worse than the old one: by a share of the old value, and
/// by `besides`.
struct Column {
  const char* name;
  double share;
  double besides;
  bool more_is_better;
};
constexpr std::size_t kColumns = 7;
constexpr std::array<Column, kColumns> kTable{{
    // No intended change of pacing has cost a tenth so far.
    {"Gbit/s", 0.10, 0, true},
    {"port %", 0.10, 0, true},
    // Losses come in bursts when a queue overflows. One burst more is 64 KB of some megabytes.
    {"lost %", 0.10, 0.5, false},
    {"again %", 0.10, 0.5, false},
    // One more retransmission timeout takes a millisecond or more, and must count as worse.
    {"stall ms", 0.25, 0.1, false},
    {"took ms", 0.10, 0, false},
    // An allocation that every peer has costs at least some dozens of bytes.
    {"state/peer", 0.05, 256, false},
}};

struct Row {
  std::string what;  ///< the name of the row, with hosts and bytes
  std::array<double, kColumns> values{};
};

/// Reads the rows of a table. Skips lines that are no rows.
std::vector<Row> rows_in(std::istream& text) {
  std::vector<Row> rows;
  for (std::string line; std::getline(text, line);) {
    if (line.empty() || line.front() == '#' || line.size() < kNameWidth) continue;
    std::istringstream words(line.substr(kNameWidth));
    std::string hosts, bytes;
    Row row;
    words >> hosts >> bytes;
    for (double& value : row.values) words >> value;
    row.what = line.substr(0, line.find_last_not_of(' ', kNameWidth - 1) + 1) + ", " + hosts + " hosts, " +
               bytes + " bytes";
    if (words) rows.push_back(row);
  }
  return rows;
}

std::string compare_row(const Row& before, const Row& now) {
  std::string worse;
  for (std::size_t i = 0; i < kColumns; ++i) {
    const Column& column = kTable[i];
    const double margin = before.values[i] * column.share + column.besides;
    const double loss = (column.more_is_better ? -1 : 1) * (now.values[i] - before.values[i]);
    if (loss <= margin) continue;
    char line[160];
    std::snprintf(line, sizeof line, "%s: %s went from %.3f to %.3f\n", now.what.c_str(), column.name,
                  before.values[i], now.values[i]);
    worse += line;
  }
  return worse;
}

/// `full`: Gbit/s of all ports that the hosts could fill; 0 if there are no ports.
void append_row(std::string& table, const char* what, std::uint32_t hosts, std::size_t size,
                const Measured& measured, double full) {
  char line[200];
  std::snprintf(line, sizeof line, "%-24s %6u %9zu %9.3f %8.1f %7.3f %8.3f %10.3f %10.3f %10zu\n", what,
                hosts, size, measured.gigabits(), full > 0 ? 100 * measured.gigabits() / full : 0,
                100 * measured.lost_share(), 100 * measured.retransmitted_share(),
                static_cast<double>(measured.worst_stall.count()) / 1e6,
                static_cast<double>(measured.duration.count()) / 1e6, measured.bytes_per_peer);
  table += line;
  std::fputs(line, stdout);  // at once: the next row may take minutes
  std::fflush(stdout);
}

void append_row(std::string& table, const char* what, const Scenario& scenario) {
  const double port = static_cast<double>(scenario.port.bits_per_second) / 1e9;
  const bool incast = scenario.plan.pattern == Pattern::incast;
  append_row(table, what, scenario.hosts, scenario.plan.sizes.fixed, measure(scenario),
             port * (incast ? 1 : scenario.hosts));
}

void incast(std::string& table, std::uint32_t senders, std::size_t size, std::uint32_t messages) {
  Scenario scenario;
  scenario.hosts = senders + 1;
  scenario.plan = plain_plan(Pattern::incast, size, messages);
  scenario.plan.in_flight = 2;
  scenario.plan.receive_depth = 2 * senders;
  scenario.port.bits_per_second = 1'000'000'000;
  scenario.port.switch_queue_bytes = 64 * 1024;
  scenario.port.delay = 5us;
  const std::string what = std::to_string(senders) + " to one, 64 KB buffer";
  append_row(table, what.c_str(), scenario);
}

void all_to_all(std::string& table, std::uint32_t hosts, std::size_t size) {
  Scenario scenario;
  scenario.hosts = hosts;
  scenario.plan = plain_plan(Pattern::all_to_all, size, hosts - 1);
  scenario.plan.in_flight = 16;
  scenario.plan.receive_depth = 32;
  scenario.port.delay = 5us;
  append_row(table, "all to all", scenario);
}

}  // namespace

std::string scale_table(std::uint32_t most_hosts) {
  std::string table;
  std::printf(
      "# All to all: 10 Gbit/s ports with 512 KB, one message to each other host. Many to one: 1 Gbit/s\n"
      "# ports with 64 KB. One to a group: no ports, 1 %% lost at each member. Simulated time; state: the "
      "largest\n"
      "# memory of an engine by its peers, of a group its sender's by the members.\n"
      "# Made by cluster-sim --scale; the same on every machine.\n"
      "#\n"
      "# what                    hosts     bytes    Gbit/s   port %%  lost %%  again %%   stall ms    took "
      "ms  state/peer\n");
  for (const std::uint32_t senders : {16u, 64u, 256u}) {
    if (senders >= most_hosts) continue;
    incast(table, senders, kHuge, std::max(2u, 64u / senders));
    incast(table, senders, kLarge, 8);
  }
  for (const std::uint32_t members : {64u, 1000u}) {
    if (members > most_hosts) continue;
    for (const std::size_t size : {kLarge, kHuge})
      append_row(table, "one to a group", members, size, measure_group(members, size), 0);
  }
  for (const std::uint32_t hosts : {50u, 200u, 500u, 1000u}) {
    if (hosts > most_hosts) continue;
    all_to_all(table, hosts, kSmall);
    if (hosts <= 200) all_to_all(table, hosts, kLarge);
  }
  return table;
}

std::string compare_scale(const std::string& fresh, const std::string& path) {
  std::ifstream file(path);
  if (!file) return "cannot read " + path + "\n";
  std::istringstream text(fresh);
  const std::vector<Row> before = rows_in(file);
  std::string worse;
  for (const Row& row : rows_in(text)) {
    const auto same =
        std::find_if(before.begin(), before.end(), [&](const Row& other) { return other.what == row.what; });
    if (same == before.end()) {
      worse += path + " has no row for " + row.what + "\n";
    } else {
      worse += compare_row(*same, row);
    }
  }
  return worse;
}

}  // namespace cluster::sim
