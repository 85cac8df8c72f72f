// The libfabric of this process: the loaded one, or else the system's. A provider can serve only one
// libfabric, so the library must use the one that MPI has loaded.
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

  /// Returns false, with the reason, if no libfabric can be loaded.
  bool load(std::string& reason);
};

}  // namespace coll
