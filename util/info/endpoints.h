// Finds the endpoints of running processes by the names of their report sockets, and queries them
// (provider/report_server.h). A user queries the user's own endpoints in this network namespace. Root queries
// those of all users; outside of any container, or for a process that root names, also in all other
// namespaces of the node.
#pragma once

#include <functional>
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
  unsigned user = ~0u;   ///< ~0: unknown, there was no connection
  Launcher launcher;     ///< of its process, if requested
  Report report;
  std::string json;  ///< in place of the report, if requested
};

/// True if there is any endpoint, queried or not.
struct Neighbour {
  std::string network;
  std::string endpoint;
  int process = 0;
  std::string command;
};

struct EndpointReports {
  std::vector<EndpointReport> answers;  ///< ordered by process, then address
  std::vector<Neighbour> neighbours;
  std::size_t foreign = 0;   ///< endpoints of other users, which were not queried
  std::size_t left_out = 0;  ///< endpoints of users who have more than their share
};

/// The name of a process's command, without unprintable characters; empty if there is no such process.
std::string command_of(int process);

/// `processes`: only these; none: all. `arrived` is called for each answer as soon as it has arrived, and may replace
/// the report by a shorter form.
EndpointReports query_endpoints(const std::vector<int>& processes,
                                const std::function<void(EndpointReport&)>& arrived);

}  // namespace cluster::info
