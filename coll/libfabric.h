// The libfabric of this process: the one that is loaded already, else the system's. A provider can serve one of them
// only, so that where MPI has one it has to be the same.
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

  /// False, with the reason, if there is none.
  bool load(std::string& reason);
};

}  // namespace coll
