// The endpoints of running processes: found by the names of their report sockets, and queried
// (provider/report_server.h). A user queries his own endpoints in this network namespace, root those of all users,
// and in all namespaces of the node: where it runs outside of any container, or names the process.
#pragma once

#include <string>
#include <vector>

#include "base/report.h"
#include "launcher.h"

namespace cluster::info {

struct EndpointReport {
  int process = 0;  ///< in this PID namespace; 0 if it is in another one
  std::string command;
  std::string network;   ///< a process of its network namespace: "self", or its number
  std::string endpoint;  ///< its address
  std::string trouble;   ///< why there is no report
  Launcher launcher;     ///< of its process, where that was asked for
  Report report;
};

/// Any endpoint there is, asked or not.
struct Neighbour {
  std::string network;
  std::string endpoint;
  int process = 0;
  std::string command;
};

struct EndpointReports {
  std::vector<EndpointReport> answers;  ///< ordered by process, then address
  std::vector<Neighbour> neighbours;
  std::size_t foreign = 0;  ///< endpoints of other users, which were not queried
};

/// `processes`: only these; none: all.
EndpointReports query_endpoints(const std::vector<int>& processes);

}  // namespace cluster::info
