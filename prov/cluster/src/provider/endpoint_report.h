// Records about the provider's options and endpoints for cluster-info. They are taken from the tables and
// objects in use, so that a report always shows what is in force.
#pragma once

#include <string>
#include <vector>

#include "base/report.h"
#include "engine/endpoint_stats.h"
#include "provider/options.h"

namespace cluster::provider {

/// A record of kind option for each option, with the value in force and its origin.
void report_options(const Options& options, Report& report);

struct EndpointSetup {
  SocketAddress name;
  std::vector<std::string> interfaces;  ///< by link, the first being that of the name
  std::string link;
  std::string not_packet_reason;  ///< why it is not the packet link; empty if it is
  std::size_t frame_max = 0;
  bool shm = false;
  std::string no_shm_reason;
  bool datagrams = false;
};

/// A record of kind endpoint, one of kind counters, and for each peer one of kind peer, followed by one of
/// kind rail for each path over the network; then one of kind operation for each that is under way.
void report_endpoint(const EndpointSetup& setup, const engine::EndpointStats& stats, Report& report);

}  // namespace cluster::provider
