// Measurements in simulated time: one workload on a cluster of equal hosts. The numbers do not depend on the
// machine that runs the simulator. There are two reports: goodput against loss, and scale.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/sim_cluster.h"

namespace cluster::sim {

struct Scenario {
  std::uint64_t seed = 1;
  std::uint32_t hosts = 2;
  WorkloadPlan plan;
  HostProfile profile;
  Port port;
  std::vector<Port> further_rails;  ///< ports on the other rails
  Time cut_at = kNever;             ///< then the port of host 1 on the last rail goes down
  Duration limit = 600s;            ///< in simulated time; a longer run is a liveness failure
};

struct Measured {
  Duration duration{0};  ///< until the last message had arrived
  std::uint64_t bytes = 0;
  std::uint64_t frames = 0;
  std::uint64_t lost = 0;  ///< by cables and full queues
  std::uint64_t retransmitted = 0;
  std::uint64_t timeouts = 0;
  Duration worst_stall{0};         ///< longest time between two arrivals at a receiving host
  std::size_t bytes_per_peer = 0;  ///< largest memory of an engine, divided by the number of its peers
  std::uint64_t digest = 0;

  double gigabits() const { return static_cast<double>(bytes) * 8 / static_cast<double>(duration.count()); }
  double lost_share() const { return static_cast<double>(lost) / static_cast<double>(frames); }
  double retransmitted_share() const {
    return static_cast<double>(retransmitted) / static_cast<double>(frames);
  }
};

Measured measure(const Scenario& scenario);

/// A plan that sends untagged messages of one size to wildcard receives, and does nothing else.
WorkloadPlan plain_plan(Pattern pattern, std::size_t size, std::uint32_t messages);

/// Goodput of a stream of 1 MB messages between two hosts at several rates of loss, as a table.
std::string goodput_table();
/// Compares a fresh table with the one in the file. Returns what is worse by more than the tolerance, or an
/// empty text. Adds what is better to `notes`.
std::string compare_goodput(const std::string& fresh, const std::string& path, std::string& notes);

/// Measures all-to-all, many-to-one and one-to-group with up to so many hosts. Returns the rows of the
/// table. Prints each row to standard output as soon as it is known.
std::string scale_table(std::uint32_t most_hosts);
/// Compares fresh rows with those in the file. Returns what is worse, or an empty text.
std::string compare_scale(const std::string& fresh, const std::string& path);

}  // namespace cluster::sim
