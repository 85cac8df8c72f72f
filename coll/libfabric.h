// The libfabric that this library uses: the libfabric that the process has already loaded, or else the
// system's. A provider can serve only one libfabric in a process, so this library must use the libfabric that
// MPI has loaded.
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
