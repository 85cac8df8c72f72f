// The launcher of a rank on this node (mpirun, orted, hydra, slurmstepd), and its unanswered TCP connections:
// ranks that wait for no peer may wait for the launcher.
#pragma once

#include <string>
#include <vector>

namespace cluster::info {

struct SilentConnection {
  std::string from, to;  ///< address and port
  unsigned retransmissions = 0;
};

struct Launcher {
  int process = 0;  ///< 0: unknown
  std::string command;
  std::vector<SilentConnection> silent;
};

/// The nearest ancestor of a process that is a launcher.
Launcher launcher_of(int process);

}  // namespace cluster::info
