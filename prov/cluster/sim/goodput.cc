// Measures the goodput of a stream of large messages on a cable that loses frames.
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <vector>

#include "sim/measure.h"

namespace cluster::sim {
namespace {

constexpr std::array<std::uint32_t, 5> kLosses{0, 1'000, 10'000, 50'000, 100'000};
constexpr std::uint64_t kSeeds = 3;
constexpr std::size_t kMessage = 1024 * 1024;
constexpr std::uint32_t kMessages = 24;

/// How much goodput a row may lose, and how much its ratio may grow, before it counts as worse.
constexpr double kGoodputTolerance = 0.05;
constexpr double kRatioTolerance = 0.05;

struct Row {
  double loss = 0;  ///< in percent, as all shares
  double gigabits = 0;
  double of_lossless = 0;
  double lost = 0;
  double retransmitted = 0;
  double ratio = 0;  ///< retransmitted frames per lost frame
  double stall_ms = 0;
  double timeouts = 0;
};

Scenario scenario_of(std::uint32_t loss, std::uint64_t seed) {
  Scenario scenario;
  scenario.seed = seed;
  scenario.plan = plain_plan(Pattern::one_way, kMessage, kMessages);
  scenario.plan.in_flight = 4;
  scenario.plan.receive_depth = 8;
  scenario.port.delay = 5us;
  scenario.port.out.loss = loss;
  return scenario;
}

Row measure_row(std::uint32_t loss, double lossless) {
  Measured sum;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Measured measured = measure(scenario_of(loss, seed));
    sum.duration += measured.duration;
    sum.bytes += measured.bytes;
    sum.frames += measured.frames;
    sum.lost += measured.lost;
    sum.retransmitted += measured.retransmitted;
    sum.timeouts += measured.timeouts;
    sum.worst_stall = std::max(sum.worst_stall, measured.worst_stall);
  }
  Row row;
  row.loss = loss / 1e4;
  row.gigabits = sum.gigabits();
  row.of_lossless = 100 * (lossless == 0 ? 1 : row.gigabits / lossless);
  row.lost = 100 * sum.lost_share();
  row.retransmitted = 100 * sum.retransmitted_share();
  row.ratio = sum.lost == 0 ? 0 : static_cast<double>(sum.retransmitted) / static_cast<double>(sum.lost);
  row.stall_ms = static_cast<double>(sum.worst_stall.count()) / 1e6;
  row.timeouts = static_cast<double>(sum.timeouts);
  return row;
}

std::vector<Row> rows_in(std::istream& text) {
  std::vector<Row> rows;
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    Row row;
    words >> row.loss >> row.gigabits >> row.of_lossless >> row.lost >> row.retransmitted >> row.ratio >>
        row.stall_ms >> row.timeouts;
    if (words) rows.push_back(row);
  }
  return rows;
}

std::string compare_rows(const Row& before, const Row& now, std::string& notes) {
  char text[160];
  std::string worse;
  const double change = now.gigabits / before.gigabits - 1;
  std::snprintf(text, sizeof text, "at %.1f %% loss goodput went from %.3f to %.3f Gbit/s\n", now.loss,
                before.gigabits, now.gigabits);
  if (change < -kGoodputTolerance) worse += text;
  if (change > kGoodputTolerance) notes += text;
  std::snprintf(text, sizeof text, "at %.1f %% loss retransmitted by lost went from %.3f to %.3f\n", now.loss,
                before.ratio, now.ratio);
  if (now.ratio > before.ratio + kRatioTolerance) worse += text;
  if (now.ratio < before.ratio - kRatioTolerance) notes += text;
  return worse;
}

}  // namespace

std::string goodput_table() {
  std::string table =
      "# Goodput against loss: 1 MB messages one way over 10 Gbit/s, 20 us there and back, frames of 1472\n"
      "# bytes, frames lost at random in both directions. Made by cluster-sim --goodput; the same on every\n"
      "# machine. Shares are of all frames of both directions.\n"
      "#\n"
      "# loss %  Gbit/s  of lossless %   lost %  sent again %  again/lost  worst stall ms  timeouts\n";
  double lossless = 0;
  for (const std::uint32_t loss : kLosses) {
    const Row row = measure_row(loss, lossless);
    if (loss == 0) lossless = row.gigabits;
    char line[160];
    std::snprintf(line, sizeof line, "%8.1f %7.3f %14.1f %8.3f %13.3f %11.3f %15.3f %9.0f\n", row.loss,
                  row.gigabits, row.of_lossless, row.lost, row.retransmitted, row.ratio, row.stall_ms,
                  row.timeouts);
    table += line;
  }
  return table;
}

std::string compare_goodput(const std::string& fresh, const std::string& path, std::string& notes) {
  std::ifstream file(path);
  if (!file) return "cannot read " + path + "\n";
  std::istringstream text(fresh);
  const std::vector<Row> before = rows_in(file);
  const std::vector<Row> now = rows_in(text);
  if (before.size() != now.size()) return path + " has another number of rows\n";
  std::string worse;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (before[i].loss != now[i].loss) return path + " has other rates of loss\n";
    worse += compare_rows(before[i], now[i], notes);
  }
  return worse;
}

}  // namespace cluster::sim
