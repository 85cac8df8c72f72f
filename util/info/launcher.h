// The launcher of a rank on this node (mpirun, orted, hydra, slurmstepd), and its TCP connections that nothing answers:
// ranks that wait for no peer may wait for it.
#pragma once

#include <string>
#include <vector>

namespace cluster::info {

struct SilentConnection {
  std::string from, to;  ///< address and port
  unsigned retransmissions = 0;
};

struct Launcher {
  int process = 0;  ///< 0: none is known
  std::string command;
  std::vector<SilentConnection> silent;
};

/// The nearest ancestor of a process that is a launcher.
Launcher launcher_of(int process);

}  // namespace cluster::info
