// The libfabric of this process. This is the one that is already loaded, or else that of the system. A
// provider can serve only one libfabric in a process, so this library must use the one that MPI has loaded.
#pragma once

#include <rdma/fabric.h>

#include <string>

namespace coll {

struct Libfabric {
  decltype(&::fi_getinfo) getinfo = nullptr;
  decltype(&::fi_freeinfo) freeinfo = nullptr;
  decltype(&::fi_dupinfo) dupinfo = nullptr;
  decltype(&::fi_fabric) fabric = nullptr;
  decltype(&::fi_strerror) strerror = nullptr;

  /// Finds or loads libfabric. On failure, returns false and writes the cause to `reason`.
  bool load(std::string& reason);
};

}  // namespace coll
