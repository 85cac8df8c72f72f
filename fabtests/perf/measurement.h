// One measurement from command to result, of any measure. The leader (the client) decides how many rounds fill the
// time, sends the command over the line, runs its part of every round and prints one JSON object per item; the
// follower, or each of several, runs its own part. Before and after each run the followers sleep on their lines while
// the leader measures how far apart the two processors are.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "control_connection.h"
#include "plan.h"

namespace perf {

enum class Figure { one_way_us, round_us, messages_per_second, bytes_per_second };

/// One measure, ready to run: what each side does in one round.
struct Benchmark {
  Figure figure = Figure::one_way_us;
  std::function<void(std::uint64_t)> lead;
  std::function<void(std::uint64_t)> follow;  ///< empty: the follower only makes progress
  double messages = 1;                        ///< per round
  double bytes = 0;                           ///< per round
  double pauses = 0;  ///< seconds of each round that pass on purpose, no part of the figure
  /// The figure is the mean, not the median over short parts: waiting for a processor is part of the measure.
  bool mean = false;
  /// If set, the leader's work overlaps this: it is given seconds of computation to do meanwhile, and the
  /// result is how much of the transfer they hid.
  std::function<void(double)> compute;
};

struct MeasurementSettings {
  double seconds = 0.1;  ///< one run
  int own_cpu = -1;
  int other_cpu = -1;
  std::function<Benchmark(const Item&)> work;  ///< throws std::invalid_argument if there is no such measure
  std::function<void()> progress = [] {};      ///< makes progress while there is nothing to do
};

/// The line to the other side: calls HOST:PORT, or, if that is empty, waits for a call on a port that is
/// printed as "port N" for the program that starts the other side.
ControlConnection connect_sides(const std::string& call);
/// How long a side pauses before it sends where the other is to be asleep by then: longer than a provider looks before it
/// sleeps.
inline constexpr double kFallAsleepSeconds = 300e-6;
/// Lets so much time pass without giving up the processor.
void compute_for(double seconds);

/// The whole plan, item after item, with the followers at the other ends of these lines.
void lead(std::span<ControlConnection> lines, const std::vector<Item>& plan,
          const MeasurementSettings& conduct);
void follow(ControlConnection& line, const MeasurementSettings& conduct);

}  // namespace perf
