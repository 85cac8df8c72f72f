#include "measurement.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>

#include "processor.h"

namespace perf {
namespace {

using Clock = std::chrono::steady_clock;

/// The figure is the median of so many parts of a run: short ones fall between the turns of other processes.
constexpr std::uint64_t kLaps = 1000;
constexpr std::size_t kStampsMax = 200'000;  ///< single round trips timed for the percentiles
constexpr std::uint64_t kWarmUpRounds = 4;
constexpr char kEnd = 'e', kPrepare = 'p', kRun = 'r';

struct Order {
  char kind;
  std::uint64_t rounds;
};

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double quantile(std::vector<double>& sorted, double part) {
  if (sorted.empty()) return 0;
  return sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1))];
}

/// The result of one run.
struct Result {
  double round_seconds = 0;  ///< median over the laps, or the mean
  double seconds = 0;
  double cpu_seconds = 0;  ///< of all sides
  std::uint64_t rounds = 0;
};

class Leader {
 public:
  Leader(std::span<ControlConnection> lines, const MeasurementSettings& conduct)
      : lines_(lines), conduct_(conduct) {}

  void measure(const Item& item) {
    for (ControlConnection& line : lines_) {
      line.put(Order{kPrepare, 0});
      line.put_blob(item.text());
    }
    work_ = conduct_.work(item);
    await_ready();
    const std::uint64_t rounds = rounds_for(conduct_.seconds);
    const double before = cache_line_ns(conduct_.other_cpu);
    const Result result = run_for(conduct_.seconds, rounds);
    std::vector<double> stamps;
    if (work_.figure == Figure::one_way_us) {
      stamps = run_stamped(std::min<std::uint64_t>(result.rounds, kStampsMax));
    }
    double hidden = -1;
    if (work_.compute) hidden = hidden_percent(result.round_seconds, result.rounds);
    const double after = cache_line_ns(conduct_.other_cpu);
    print(item, result, stamps, hidden, before, after);
  }

 private:
  void await_ready() {
    for (ControlConnection& line : lines_) line.take<char>();
  }

  /// Returns the processor time of the followers.
  template <typename Loop>
  double ordered(std::uint64_t rounds, Loop&& loop) {
    for (ControlConnection& line : lines_) line.put(Order{kRun, rounds});
    await_ready();
    loop();
    double cpu = 0;
    for (ControlConnection& line : lines_) line.meet(conduct_.progress);
    for (ControlConnection& line : lines_) cpu += line.take<double>();
    return cpu;
  }

  Result run(std::uint64_t rounds) {
    const std::uint64_t lap = std::max<std::uint64_t>(1, rounds / kLaps);
    std::vector<double> laps;
    Result result;
    result.rounds = rounds;
    const double cpu = cpu_seconds();
    result.cpu_seconds = ordered(rounds, [&] {
      const auto start = Clock::now();
      auto last = start;
      for (std::uint64_t i = 1; i <= rounds; ++i) {
        work_.lead(i);
        if (i % lap != 0) continue;
        const auto now = Clock::now();
        laps.push_back(std::chrono::duration<double>(now - last).count() / static_cast<double>(lap));
        last = now;
      }
      result.seconds = since(start);
    });
    result.cpu_seconds += cpu_seconds() - cpu;
    std::sort(laps.begin(), laps.end());
    result.round_seconds = work_.mean ? result.seconds / static_cast<double>(rounds) : quantile(laps, 0.5);
    return result;
  }

  /// Every round trip timed on its own; the reading of the clock is part of each.
  std::vector<double> run_stamped(std::uint64_t rounds) {
    std::vector<double> stamps(rounds);
    ordered(rounds, [&] {
      auto last = Clock::now();
      for (std::uint64_t i = 1; i <= rounds; ++i) {
        work_.lead(i);
        const auto now = Clock::now();
        stamps[i - 1] = std::chrono::duration<double>(now - last).count();
        last = now;
      }
    });
    std::sort(stamps.begin(), stamps.end());
    return stamps;
  }

  /// So many rounds fill the time; finding out is the warm-up. Medians over laps decide, so that one
  /// interruption, or a connection that is made at first use, does not.
  std::uint64_t rounds_for(double seconds) {
    run(kWarmUpRounds);
    for (std::uint64_t rounds = kWarmUpRounds;; rounds *= 4) {
      const Result result = run(rounds);
      const double round = std::max(result.round_seconds, 1e-9);
      if (round * static_cast<double>(rounds) < seconds / 8 && result.seconds < 2 * seconds) continue;
      return std::max<std::uint64_t>(kWarmUpRounds, static_cast<std::uint64_t>(seconds / round));
    }
  }

  /// If the warm-up was slower than the run, because it was interrupted or a stream had just begun, the run
  /// ends too early to say anything. Then it is repeated with more rounds.
  Result run_for(double seconds, std::uint64_t rounds) {
    for (;;) {
      const Result result = run(rounds);
      if (result.seconds >= seconds / 2) return result;
      rounds = static_cast<std::uint64_t>(static_cast<double>(rounds) * seconds / result.seconds) + 1;
    }
  }

  double hidden_percent(double alone, std::uint64_t rounds) {
    const double computing = 1.2 * alone;
    work_.compute(computing);
    const double together = run(std::max<std::uint64_t>(4, rounds / 2)).round_seconds;
    work_.compute(0);
    return 100 * std::clamp(1 - (together - computing) / alone, 0.0, 1.0);
  }

  void print(const Item& item, const Result& result, std::vector<double>& stamps, double hidden,
             double before, double after) const {
    const double round = result.round_seconds;
    const char* unit = "us";
    double value = 1e6 * (round - work_.pauses);
    switch (work_.figure) {
      case Figure::one_way_us: value /= 2; break;
      case Figure::round_us: break;
      case Figure::messages_per_second:
        value = work_.messages / round;
        unit = "1/s";
        break;
      case Figure::bytes_per_second:
        value = work_.bytes / round;
        unit = "B/s";
        break;
    }
    if (hidden >= 0) {
      value = hidden;
      unit = "%";
    }
    std::printf("{\"measure\": \"%s\", \"bytes\": %zu, \"window\": %u, \"value\": %.6g, \"unit\": \"%s\"",
                item.measure.c_str(), item.bytes, item.window, value, unit);
    if (!stamps.empty()) {
      const auto one_way_us = [&](double part) { return 0.5e6 * (quantile(stamps, part) - work_.pauses); };
      std::printf(", \"p50\": %.6g, \"p99\": %.6g, \"p999\": %.6g", one_way_us(0.5), one_way_us(0.99),
                  one_way_us(0.999));
    }
    const double rounds = static_cast<double>(result.rounds);
    std::printf(", \"messages\": %.0f, \"volume\": %.0f, \"seconds\": %.6g, \"cpu_seconds\": %.6g",
                rounds * work_.messages, rounds * work_.bytes, result.seconds, result.cpu_seconds);
    std::printf(", \"mean_round_us\": %.6g", 1e6 * result.seconds / rounds);
    std::printf(", \"line_ns\": [%.1f, %.1f]}\n", before, after);
    std::fflush(stdout);
  }

  std::span<ControlConnection> lines_;
  const MeasurementSettings& conduct_;
  Benchmark work_;
};

}  // namespace

ControlConnection connect_sides(const std::string& call) {
  if (call.empty()) {
    return ControlConnection::answer([](std::uint16_t port) {
      std::printf("port %u\n", port);
      std::fflush(stdout);
    });
  }
  const std::size_t colon = call.rfind(':');
  if (colon == std::string::npos) throw std::invalid_argument("--call wants HOST:PORT");
  return ControlConnection::call(call.substr(0, colon),
                                 static_cast<std::uint16_t>(std::stoul(call.substr(colon + 1))));
}

void compute_for(double seconds) {
  const auto start = Clock::now();
  while (since(start) < seconds) {
  }
}

void lead(std::span<ControlConnection> lines, const std::vector<Item>& plan,
          const MeasurementSettings& conduct) {
  Leader leader(lines, conduct);
  for (const Item& item : plan) leader.measure(item);
  for (ControlConnection& line : lines) line.put(Order{kEnd, 0});
}

void follow(ControlConnection& line, const MeasurementSettings& conduct) {
  Benchmark work;
  for (;;) {
    const auto order = line.take<Order>();
    if (order.kind == kEnd) return;
    if (order.kind == kPrepare) {
      work = conduct.work(parse_item(line.take_blob()));
      line.put('r');
      continue;
    }
    line.put('r');
    const double cpu = cpu_seconds();
    for (std::uint64_t i = 1; work.follow && i <= order.rounds; ++i) work.follow(i);
    line.meet(conduct.progress);
    line.put(cpu_seconds() - cpu);
  }
}

}  // namespace perf
