// Writes records about the provider's options and endpoints for cluster-info. The values come from the tables
// and objects in use, so a report always shows what is in force.
#pragma once

#include <string>
#include <vector>

#include "base/report.h"
#include "engine/endpoint_stats.h"
#include "provider/options.h"

namespace cluster::provider {

/// Adds one record of kind option for each option, with the value in force and its origin.
void report_options(const Options& options, Report& report);

struct EndpointSetup {
  SocketAddress name;
  std::vector<std::string> interfaces;  ///< by link; the first is the interface of the name
  std::string link;
  std::string not_packet_reason;  ///< why the link is not the packet link; empty if it is
  std::size_t frame_max = 0;
  bool shm = false;
  std::string no_shm_reason;
  bool datagrams = false;
};

/// Adds one record of kind endpoint and one of kind counters. For each peer it adds one of kind peer and, for
/// each network path to the peer, one of kind rail. Then it adds one of kind operation for each operation
/// under way, and one of kind message for each stored message.
void report_endpoint(const EndpointSetup& setup, const engine::EndpointStats& stats, Report& report);

}  // namespace cluster::provider
