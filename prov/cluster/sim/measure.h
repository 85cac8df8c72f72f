// Measurements in simulated time: one workload on a cluster of equals, with numbers that do not depend
// on the machine they are taken on. Two reports are made of them: goodput against loss, and scale.
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
  std::vector<Port> further_rails;  ///< besides that of `port`
  Time cut_at = kNever;             ///< from then on nothing passes on the last rail to host 1
  Duration limit = 600s;            ///< simulated; longer is a liveness failure
};

struct Measured {
  Duration duration{0};  ///< until everything that was to be sent had arrived
  std::uint64_t bytes = 0;
  std::uint64_t frames = 0;
  std::uint64_t lost = 0;  ///< by cables and full queues
  std::uint64_t retransmitted = 0;
  std::uint64_t timeouts = 0;
  Duration worst_stall{0};         ///< longest time in which nothing arrived at a host that is sent to
  std::size_t bytes_per_peer = 0;  ///< largest memory of an engine, by its peers
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
/// Compares a fresh table with the one in the file. Returns what is worse by more than the tolerance,
/// or nothing; `notes` says what is better.
std::string compare_goodput(const std::string& fresh, const std::string& path, std::string& notes);

/// All-to-all and many-to-one with up to so many hosts: rows of a table, each also to standard output as soon
/// as it is known.
std::string scale_table(std::uint32_t most_hosts);
/// Compares fresh rows with those in the file. Returns what is worse, or nothing.
std::string compare_scale(const std::string& fresh, const std::string& path);

}  // namespace cluster::sim
