#include "processor.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace perf {
namespace {

constexpr std::uint32_t kRounds = 2000;
constexpr int kRuns = 4;
constexpr long kSpinsMax = 50'000'000;

struct alignas(128) SharedLine {
  std::atomic<std::uint32_t> value{0};
  std::atomic<bool> skipped_turns{false};
};

bool await(SharedLine& line, std::uint32_t value) {
  for (long spins = 0; line.value.load(std::memory_order_acquire) != value; ++spins) {
    if (spins == kSpinsMax || line.skipped_turns.load(std::memory_order_relaxed)) return false;
  }
  return true;
}

void reply(SharedLine& line, std::uint32_t rounds) {
  for (std::uint32_t i = 0; i < rounds && await(line, 2 * i + 1); ++i) {
    line.value.store(2 * i + 2, std::memory_order_release);
  }
}

bool pin_thread(pthread_t thread, int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return ::pthread_setaffinity_np(thread, sizeof set, &set) == 0;
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

}  // namespace

bool pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return ::sched_setaffinity(0, sizeof set, &set) == 0;
}

double cache_line_ns(int other) {
  if (other < 0 || other == ::sched_getcpu()) return 0;
  SharedLine line;
  std::thread partner([&line] { reply(line, kRounds * kRuns); });
  bool good = pin_thread(partner.native_handle(), other);
  double best = 0;
  for (std::uint32_t run = 0; good && run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    for (std::uint32_t i = run * kRounds; good && i < (run + 1) * kRounds; ++i) {
      line.value.store(2 * i + 1, std::memory_order_release);
      good = await(line, 2 * i + 2);
    }
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
    const double each = time.count() / (2.0 * kRounds);
    best = run == 0 ? each : std::min(best, each);
  }
  if (!good) line.skipped_turns.store(true, std::memory_order_relaxed);
  partner.join();
  return good ? best : 0;
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace perf
