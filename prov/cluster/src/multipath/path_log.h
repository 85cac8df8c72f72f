// Lines of the log about a path: once when it does not answer, once when it works (again). EtherType paths
// are not reported: a network that does not let their frames through is no fault.
#pragma once

#include <span>

#include "base/log.h"
#include "multipath/path_state.h"

namespace cluster::multipath {

class PathLog {
 public:
  /// `rails` are this side's interfaces by number of link.
  PathLog(std::span<const Rail> rails, Log& log) : rails_(rails), log_(log) {}

  void report(const PathState& path, PathValidator::Event event) const;

 private:
  std::span<const Rail> rails_;
  Log& log_;
};

}  // namespace cluster::multipath
