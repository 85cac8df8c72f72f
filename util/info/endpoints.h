// The endpoints of the processes that run here: found by the names they listen under, in this network
// namespace, and asked what they do (provider/report_server.h). One's own are asked; root asks everybody's.
#pragma once

#include <string>
#include <vector>

#include "base/report.h"

namespace cluster::info {

struct EndpointReport {
  int process = 0;  ///< as this namespace of processes numbers it; 0 if it has no number here
  std::string command;
  std::string endpoint;  ///< its address
  std::string trouble;   ///< why there is no report
  Report report;
};

struct EndpointReports {
  std::vector<EndpointReport> answers;  ///< ordered by process, then address
  std::size_t foreign = 0;              ///< endpoints of other users, which were left alone
};

/// `processes`: only these; none: all.
EndpointReports query_endpoints(const std::vector<int>& processes);

}  // namespace cluster::info
