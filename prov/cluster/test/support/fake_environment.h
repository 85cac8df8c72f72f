// A world for tests: a clock that moves only when it is set, dice with a seed, a log that keeps its
// lines. Tests depend neither on real time nor on real randomness.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/environment.h"
#include "support/failing_memory.h"

namespace cluster::test {

/// A moment on the fake time line.
inline Time at(Duration since_start) { return Time(since_start); }

class FakeClock final : public Clock {
 public:
  Time now() override {
    const Time seen = now_;
    if (step != Duration{0}) now_ = seen + step;
    return seen;
  }
  void set(Time now) { now_ = now; }
  void advance(Duration by) { now_ = now_.load() + by; }

  Duration step{};  ///< passes with each look, while one thread alone looks

 private:
  std::atomic<Time> now_ = Time(1s);  ///< looked at by other threads, moved by one
};

/// The same seed gives the same numbers for ever (an xorshift generator, whitened).
class FakeRandom final : public Random {
 public:
  explicit FakeRandom(std::uint64_t seed = 1) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}
  std::uint64_t next() override {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ * 0x2545F4914F6CDD1Du;
  }
  std::uint64_t below(std::uint64_t limit) { return (next() >> 11) % limit; }
  bool one_in(double probability) {
    return static_cast<double>(next() >> 11) < probability * static_cast<double>(1ull << 53);
  }

 private:
  std::uint64_t state_;
};

class FakeLog final : public Log {
 public:
  bool enabled(LogLevel) const override { return true; }
  void write(LogLevel, const char* line) override {
    const SpareMemory log;
    lines.emplace_back(line);
  }

  std::vector<std::string> lines;
};

struct FakeEnvironment {
  FakeClock clock;
  FakeRandom random;
  FakeLog log;
  Counters counters;

  Environment environment() { return {clock, random, log, counters}; }
};

}  // namespace cluster::test
