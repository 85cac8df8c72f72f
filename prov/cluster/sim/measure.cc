#include "sim/measure.h"

#include <algorithm>

namespace cluster::sim {
namespace {

std::uint32_t senders(const Scenario& scenario) {
  switch (scenario.plan.pattern) {
    case Pattern::one_way: return 1;
    case Pattern::incast: return scenario.hosts - 1;
    default: return scenario.hosts;
  }
}

bool is_sent_to(const Scenario& scenario, HostNumber host) {
  switch (scenario.plan.pattern) {
    case Pattern::one_way: return host == 1;
    case Pattern::incast: return host == 0;
    default: return true;
  }
}

}  // namespace

WorkloadPlan plain_plan(Pattern pattern, std::size_t size, std::uint32_t messages) {
  WorkloadPlan plan;
  plan.name = "measurement";
  plan.pattern = pattern;
  plan.messages = messages;
  plan.sizes.fixed = size;
  plan.tagged = plan.injected = plan.unreported = plan.more = plan.scattered_buffers = 0;
  plan.buffer_free = plan.delivered = plan.to_itself = plan.exact = plan.classed = plan.truncating = 0;
  plan.wildcard = plan.with_data = kMillion;
  return plan;
}

Measured measure(const Scenario& scenario) {
  const auto rails = static_cast<RailNumber>(1 + scenario.further_rails.size());
  SimCluster cluster(scenario.seed, scenario.hosts, scenario.plan, rails);
  for (HostNumber host = 0; host < scenario.hosts; ++host) {
    cluster.network.port(host) = scenario.port;
    for (RailNumber rail = 1; rail < rails; ++rail) {
      cluster.network.port(host, rail) = scenario.further_rails[rail - 1];
    }
    cluster.add_host(scenario.profile);
  }
  for (const auto& host : cluster.hosts) host->start();
  const std::uint64_t expected = std::uint64_t{scenario.plan.messages} * senders(scenario);
  while (cluster.oracle.totals().delivered < expected) {
    if (cluster.event_queue.empty() || cluster.event_queue.now() > Time{} + scenario.limit) {
      throw LivenessFailure("the measurement does not end: " + cluster.oracle.unfinished());
    }
    if (cluster.event_queue.now() >= scenario.cut_at) cluster.network.port(1, rails - 1).down = true;
    cluster.event_queue.step();
  }
  Measured measured;
  measured.duration = cluster.event_queue.now().time_since_epoch();
  measured.bytes = cluster.oracle.totals().delivered_bytes;
  measured.frames = cluster.network.totals().frames;
  measured.lost = cluster.network.totals().lost + cluster.network.totals().tail_dropped +
                  cluster.network.totals().ring_full;
  const Counters counters = cluster.counters();
  measured.retransmitted = counters.frames_retransmitted;
  measured.timeouts = counters.timeouts;
  std::size_t memory = 0;
  for (const auto& host : cluster.hosts) {
    memory = std::max(memory, host->memory().peak());
  }
  for (HostNumber host = 0; host < scenario.hosts; ++host) {
    if (!is_sent_to(scenario, host)) continue;
    measured.worst_stall = std::max(measured.worst_stall, cluster.hosts[host]->longest_stall());
  }
  measured.bytes_per_peer = memory / (scenario.hosts - 1);
  measured.digest = cluster.event_queue.digest();
  return measured;
}

}  // namespace cluster::sim
