// Writes records about the provider's options and endpoints for cluster-info. The values come from the tables
// and objects that the provider itself uses, so a report always shows the current state.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/report.h"
#include "engine/endpoint_stats.h"
#include "os/ring_table.h"
#include "os/verbs_link.h"
#include "provider/options.h"

namespace cluster::provider {

/// Adds one record of kind option for each option, with its current value and where the value comes from.
void report_options(const Options& options, Report& report);

/// A port of an RDMA device that an endpoint uses.
struct VerbsRail {
  os::VerbsPort port;
  std::shared_ptr<const std::atomic<os::VerbsState>> state;
};

struct EndpointSetup {
  SocketAddress name;
  std::vector<std::string> interfaces;  ///< one for each link; the first has the endpoint's address
  std::string link;
  std::string not_packet_reason;  ///< why the link is not the packet link; empty if it is the packet link
  std::size_t frame_max = 0;
  bool shm = false;
  std::string no_shm_reason;
  bool datagrams = false;
  std::shared_ptr<const os::RingTable> rings = nullptr;  ///< the group of the rings of the first link
  std::vector<VerbsRail> verbs = {};
};

/// Returns a text such as "port rxe0/1, GID 1 ::ffff:10.0.0.1, 25000 Mbit/s, frames of at most 1024 bytes".
std::string verbs_text(const os::VerbsPort& port);

/// Adds one record of kind endpoint, one of kind device for each port of an RDMA device, and one of kind
/// counters. For each peer, adds one record of kind peer and, for each network path to the peer, one of kind
/// rail. Then adds one record of kind operation for each operation in progress, and one of kind message for
/// each stored message.
void report_endpoint(const EndpointSetup& setup, const engine::EndpointStats& stats, Report& report);

}  // namespace cluster::provider
