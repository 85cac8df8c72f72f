// What the provider says of itself to whoever asks: facts for a report, taken from the tables and objects
// that are at work, so that it cannot say other than what it does.
#pragma once

#include <string>
#include <vector>

#include "base/report.h"
#include "engine/endpoint_stats.h"
#include "provider/options.h"

namespace cluster::provider {

/// A record of kind option for each, with its value in force and where that comes from.
void report_options(const Options& options, Report& report);

/// What was decided when an endpoint was opened.
struct EndpointSetup {
  SocketAddress name;
  std::vector<std::string> interfaces;  ///< by number of link, the first that of the name
  std::string link;
  std::string why_link;  ///< why not a better one; empty if it is the best
  std::size_t frame_max = 0;
  bool shm = false;
  std::string why_no_shm;
  bool datagrams = false;
};

/// A record of kind endpoint, one of kind counters, and for each peer one of
/// kind peer, with one of kind rail behind it for each way over the network.
void report_endpoint(const EndpointSetup& setup, const engine::EndpointStats& seen, Report& report);

}  // namespace cluster::provider
